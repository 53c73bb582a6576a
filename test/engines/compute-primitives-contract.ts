/** Contract of the compute primitives, in WebAssembly and in the addon, against plain loops. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { near, type Tested, whole } from './contract-values.js';
import { convolutionContract } from './convolution-contract.js';
import { poolingContract } from './pooling-contract.js';

/** Registers the tests; `loops` is called in them. */
export function loopsContract(name: string, loops: () => Tested, skip: string | false = false): void {
  describe(name, { skip }, () => {
    convolutionContract(loops);
    poolingContract(loops);

    it('products match plain loops, also for transposed matrices', () => {
      const length = fc.integer({ min: 1, max: 20 });
      fc.assert(
        fc.property(length, length, length, fc.boolean(), fc.boolean(), (m, n, k, transposeA, transposeB) => {
          const [a, b] = [whole(m * k, 1), whole(k * n, 2)];
          const c = new Float32Array(m * n);
          for (let i = 0; i < m; i++)
            for (let j = 0; j < n; j++)
              for (let l = 0; l < k; l++)
                c[i * n + j]! +=
                  a[transposeA ? l * m + i : i * k + l]! * b[transposeB ? j * k + l : l * n + j]!;
          const product = new Float32Array(m * n).fill(NaN);
          loops().multiply(Int32Array.of(m, n, k, Number(transposeA), Number(transposeB)), a, b, product);
          assert.deepEqual(product, c);
        }),
        { seed: 42 },
      );
    });

    it('sums of channels', () => {
      for (const [rows, columns] of [
        [1000, 7],
        [5, 8],
        [1000, 8],
        [333, 64],
      ] as const) {
        const x = whole(rows * columns, 1);
        const expected = new Float32Array(columns);
        x.forEach((value, i) => {
          expected[i % columns]! += value;
        });
        const sums = new Float32Array(columns).fill(NaN);
        loops().columnSums(rows, columns, x, sums);
        assert.deepEqual(sums, expected);
      }
    });

    it('ReLU and leaky ReLU, and their gradients', () => {
      const x = Float32Array.of(-2, -0, 0, 3, NaN, -Infinity, Infinity, 1, -1);
      const dy = whole(x.length, 5);
      for (const alpha of [0, 0.5]) {
        const y = new Float32Array(x.length).fill(7);
        loops().leakyRelu(x.length, alpha, x, y);
        assert.deepEqual(
          y,
          x.map((value) => (value < 0 ? (alpha === 0 ? 0 : alpha * value) : value)),
        );
        const dx = new Float32Array(x.length).fill(7);
        loops().leakyReluGradient(x.length, alpha, x, dy, dx);
        assert.deepEqual(
          dx.map((value) => value + 0),
          dy.map((value, i) => (x[i]! > 0 ? value : alpha * value) + 0),
        );
      }
    });

    it('copies of some columns into another matrix', () => {
      const size = fc.record({ rows: fc.nat(9), columns: fc.nat(40), first: fc.nat(5), more: fc.nat(5) });
      fc.assert(
        fc.property(size, size, ({ rows, columns, first, more }, other) => {
          const [fromWidth, toWidth] = [columns + first + more, columns + other.first + other.more];
          const from = whole(rows * fromWidth, 1);
          const to = whole(rows * toWidth, 2);
          const expected = to.slice();
          for (let row = 0; row < rows; row++)
            for (let c = 0; c < columns; c++)
              expected[row * toWidth + other.first + c] = from[row * fromWidth + first + c]!;
          loops().copyColumns(Int32Array.of(rows, columns, fromWidth, first, toWidth, other.first), from, to);
          assert.deepEqual(to, expected);
        }),
        { seed: 42 },
      );
    });

    it('mean and variance of channels, also for large values with small differences', () => {
      for (const channels of [1, 3, 4, 7, 64]) {
        const rows = 1000;
        const x = whole(rows * channels, channels).map((value, i) => value / 8 + 1000 * (i % channels));
        const [mean, variance] = [0, 1].map(() => new Float32Array(channels).fill(NaN));
        loops().channelMoments(rows, channels, x, mean!, variance!);
        for (let c = 0; c < channels; c++) {
          const own = Array.from({ length: rows }, (_, row) => x[row * channels + c]!);
          const average = own.reduce((sum, value) => sum + value, 0) / rows;
          const spread = own.reduce((sum, value) => sum + (value - average) ** 2, 0) / rows;
          near(mean![c]!, average, 1e-6);
          near(variance![c]!, spread, 1e-5);
        }
      }
    });

    it('batch normalisation: scaled channels, the sums of its gradient, and the gradient', () => {
      for (const channels of [1, 3, 4, 7, 64]) {
        const rows = 300;
        const [x, dy] = [whole(rows * channels, 1), whole(rows * channels, 2)];
        const infinite = x.map(() => Infinity);
        const [mean, scale, slope, offset] = [3, 4, 5, 6].map((seed) => whole(channels, seed)) as [
          Float32Array,
          Float32Array,
          Float32Array,
          Float32Array,
        ];
        const [y, dx] = [0, 1].map(() => new Float32Array(x.length).fill(NaN));
        const [sums, products] = [0, 1].map(() => new Float32Array(channels).fill(NaN));
        loops().scaleChannels(rows, channels, x, mean, scale, offset, y!);
        const large = new Float32Array(x.length);
        loops().scaleChannels(rows, channels, infinite, mean, mean.map(Math.abs), offset, large);
        assert.ok(
          large.every((value, i) => (mean[i % channels] === 0 ? Number.isNaN(value) : value === Infinity)),
        );
        loops().batchNormSums(rows, channels, x, dy, mean, sums!, products!);
        loops().batchNormGradient(rows, channels, x, dy, mean, scale, slope, offset, dx!);
        const [trueSums, trueProducts] = [0, 1].map(() => new Float32Array(channels));
        x.forEach((value, i) => {
          const c = i % channels;
          const distance = value - mean[c]!;
          assert.equal(y![i], distance * scale[c]! + offset[c]!);
          assert.equal(dx![i], scale[c]! * dy[i]! + slope[c]! * distance + offset[c]!);
          trueSums![c]! += dy[i]!;
          trueProducts![c]! += dy[i]! * distance;
        });
        assert.deepEqual(sums, trueSums);
        assert.deepEqual(products, trueProducts);
      }
    });

    it('a step of Adam', () => {
      for (const length of [1, 4, 11]) {
        const [beta1, beta2, decay, rate, epsilon] = [0.5, 0.999, 1e-2, 1e-3, 1e-7];
        const [w, g, m] = [1, 2, 3].map((seed) => whole(length, seed)) as [
          Float32Array,
          Float32Array,
          Float32Array,
        ];
        const v = whole(length, 4).map((value) => value ** 2);
        const [toW, toM, toV] = [0, 1, 2].map(() => new Float32Array(length).fill(NaN));
        loops().adam(length, beta1, beta2, decay, rate, epsilon, w, g, m, v, toW!, toM!, toV!);
        for (let i = 0; i < length; i++) {
          const gradient = g[i]! + decay * w[i]!;
          const mean = beta1 * m[i]! + (1 - beta1) * gradient;
          const square = beta2 * v[i]! + (1 - beta2) * gradient ** 2;
          near(toM![i]!, mean, 1e-6);
          near(toV![i]!, square, 1e-6);
          near(toW![i]!, w[i]! - (rate * mean) / (Math.sqrt(square) + epsilon), 1e-6);
        }
      }
    });
  });
}
