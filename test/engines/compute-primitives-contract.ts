/** Contract of the compute primitives, in WebAssembly and in the addon, against plain loops. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type ComputePrimitives,
  FILTER_GRADIENT,
  FORWARD,
  INPUT_GRADIENT,
} from '../../src/engines/compute-primitives/compute-primitives.js';
import type { PoolingOperation } from '../../src/engines/onednn-addon.js';

interface Sizes {
  batch: number;
  height: number;
  width: number;
  channels: number;
  outputs: number;
  filter: [number, number];
  stride: [number, number];
  dilation: [number, number];
  /** Top, left, bottom, right. */
  pad: [number, number, number, number];
}

interface Shape extends Sizes {
  rows: number;
  columns: number;
}

/** Undefined if the filter does not fit into the image. */
function shapeOf(sizes: Sizes): Shape | undefined {
  const { height, width, filter, stride, dilation, pad } = sizes;
  const size = (length: number, axis: 0 | 1) =>
    Math.floor(
      (length + pad[axis]! + pad[axis + 2]! - ((filter[axis] - 1) * dilation[axis] + 1)) / stride[axis] + 1,
    );
  const [rows, columns] = [size(height, 0), size(width, 1)];
  return rows > 0 && columns > 0 ? { ...sizes, rows, columns } : undefined;
}

const geometryOf = ({ batch, height, width, channels, outputs, filter, stride, dilation, pad }: Sizes) =>
  Int32Array.of(batch, height, width, channels, outputs, ...filter, ...stride, ...dilation, ...pad);

/** Each product of an input and a weight that contributes to an output. */
function forEachProduct(s: Shape, visit: (x: number, weight: number, y: number) => void): void {
  for (let n = 0; n < s.batch; n++)
    for (let row = 0; row < s.rows; row++)
      for (let column = 0; column < s.columns; column++)
        for (let i = 0; i < s.filter[0]; i++)
          for (let j = 0; j < s.filter[1]; j++) {
            const y = row * s.stride[0] + i * s.dilation[0] - s.pad[0];
            const x = column * s.stride[1] + j * s.dilation[1] - s.pad[1];
            if (y < 0 || y >= s.height || x < 0 || x >= s.width) continue;
            for (let c = 0; c < s.channels; c++)
              for (let o = 0; o < s.outputs; o++)
                visit(
                  ((n * s.height + y) * s.width + x) * s.channels + c,
                  ((i * s.filter[1] + j) * s.channels + c) * s.outputs + o,
                  ((n * s.rows + row) * s.columns + column) * s.outputs + o,
                );
          }
}

/** Small whole numbers, whose sums are exact in float32. */
function whole(length: number, seed: number): Float32Array {
  let state = seed + 1;
  return Float32Array.from({ length }, () => {
    state = (state * 16807) % 2147483647;
    return (state % 9) - 4;
  });
}

const one = <T>(value: fc.Arbitrary<T>) => fc.tuple(value, value);
const sizes: fc.Arbitrary<Sizes> = fc.record({
  batch: fc.integer({ min: 1, max: 3 }),
  height: fc.integer({ min: 1, max: 9 }),
  width: fc.integer({ min: 1, max: 9 }),
  channels: fc.integer({ min: 1, max: 18 }),
  outputs: fc.integer({ min: 1, max: 18 }),
  filter: one(fc.integer({ min: 1, max: 4 })),
  stride: one(fc.integer({ min: 1, max: 3 })),
  dilation: one(fc.integer({ min: 1, max: 2 })),
  pad: fc.tuple(fc.nat(2), fc.nat(2), fc.nat(2), fc.nat(2)),
});
/** Convolutions of single pixels, which an engine may compute in another way. */
const ofPixels = sizes.map(
  (given): Sizes => ({ ...given, filter: [1, 1], stride: [1, 1], dilation: [1, 1], pad: [0, 0, 0, 0] }),
);

/** Convolutions of 3 x 3 pixels. The padding is a multiple of the distance between the taps. */
const inTiles: fc.Arbitrary<Sizes> = fc
  .record({
    batch: fc.integer({ min: 1, max: 2 }),
    height: fc.integer({ min: 1, max: 15 }),
    width: fc.integer({ min: 1, max: 15 }),
    channels: fc.constantFrom(8, 16, 24),
    outputs: fc.constantFrom(8, 16, 40),
    distance: fc.integer({ min: 1, max: 3 }),
    pad: fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.nat(3)),
  })
  .map(({ distance, pad: [top, left, bottom, right], ...rest }) => ({
    ...rest,
    filter: [3, 3],
    stride: [1, 1],
    dilation: [distance, distance],
    pad: [top * distance, left * distance, bottom, right],
  }));

/** Rows that fill registers, of filters without dilation whose size is a multiple of their stride. */
const inRows: fc.Arbitrary<Sizes> = fc
  .record({
    batch: fc.integer({ min: 1, max: 2 }),
    height: fc.integer({ min: 1, max: 12 }),
    width: fc.integer({ min: 8, max: 24 }),
    channels: fc.constantFrom(1, 3, 8, 16),
    outputs: fc.constantFrom(8, 24),
    stride: one(fc.integer({ min: 1, max: 2 })),
    times: one(fc.integer({ min: 1, max: 2 })),
    pad: fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.nat(3)),
  })
  .map(({ stride, times, ...rest }) => ({
    ...rest,
    stride,
    filter: [stride[0] * times[0], stride[1] * times[1]],
    dilation: [1, 1],
  }));

/** Errors are relative to the largest value. */
const TOLERANCE = 2e-5;

type Values = (length: number, seed: number) => Float32Array;

/** Winograd's tiles have factors such as 1/6, so whole numbers are not exact in them. */
const mayBeTiled = ({ channels, outputs, filter }: Shape) =>
  channels % 8 === 0 && outputs % 8 === 0 && filter[0] === filter[1] && filter[0] >= 3;

function uniform(length: number, seed: number): Float32Array {
  let state = seed + 1;
  return Float32Array.from({ length }, () => {
    state = (state * 16807) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  });
}

/** The largest error of a convolution and its gradients, compared with plain loops in float64. */
function largestError(loops: Tested, s: Shape, values: (length: number, of: number) => Float32Array): number {
  const x = values(s.batch * s.height * s.width * s.channels, 0);
  const filter = values(s.filter[0] * s.filter[1] * s.channels * s.outputs, 1);
  const dy = values(s.batch * s.rows * s.columns * s.outputs, 2);
  const bias = values(s.outputs, 3);
  const y = Float64Array.from(dy, (_, i) => bias[i % s.outputs]!);
  const dx = new Float64Array(x.length);
  const dw = new Float64Array(filter.length);
  forEachProduct(s, (atX, atFilter, atY) => {
    y[atY]! += x[atX]! * filter[atFilter]!;
    dx[atX]! += filter[atFilter]! * dy[atY]!;
    dw[atFilter]! += x[atX]! * dy[atY]!;
  });
  // Kernels must not read the former contents of their outputs.
  const [toY, toDx, toDw] = [y, dx, dw].map(({ length }) => new Float32Array(length).fill(NaN));
  const geometry = geometryOf(s);
  loops.convolve(FORWARD, geometry, x, filter, toY!, bias);
  loops.convolve(INPUT_GRADIENT, geometry, toDx!, filter, dy, null);
  loops.convolve(FILTER_GRADIENT, geometry, x, toDw!, dy, null);
  let most = 0;
  for (const [found, wanted] of [
    [toY!, y],
    [toDx!, dx],
    [toDw!, dw],
  ] as const) {
    const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
    for (const [i, value] of wanted.entries()) {
      const error = Math.abs(found[i]! - value) / largest;
      most = Number.isNaN(error) ? Infinity : Math.max(most, error);
    }
  }
  return most;
}

/** Loops of an engine. The addon leaves pooling to those on the heap. */
type Tested = Omit<ComputePrimitives, PoolingOperation> & Partial<Pick<ComputePrimitives, PoolingOperation>>;

/** Registers the tests; `loops` is called in them. */
export function loopsContract(name: string, loops: () => Tested, skip: string | false = false): void {
  describe(name, { skip }, () => {
    /** Compares convolutions and their gradients with plain loops. */
    const agrees = (
      given: fc.Arbitrary<Sizes>,
      values: Values,
      tolerance: (s: Shape) => number,
      numRuns: number,
    ) =>
      fc.assert(
        fc.property(given, fc.nat(1000), (sizes, seed) => {
          const shape = shapeOf(sizes);
          fc.pre(shape !== undefined);
          const error = largestError(loops(), shape!, (length, of) => values(length, seed + of));
          assert.ok(error <= tolerance(shape!), `${error}`);
        }),
        { seed: 42, numRuns },
      );

    it('convolutions and their gradients match plain loops; exactly for small integers, except in tiles', () => {
      agrees(fc.oneof(sizes, ofPixels), whole, (s) => (mayBeTiled(s) ? TOLERANCE : 0), 300);
    });

    it('convolutions of 3 x 3 pixels and complete vectors of channels, in tiles, match plain loops', () => {
      agrees(inTiles, uniform, () => TOLERANCE, 100);
    });

    it('convolutions of 4 x 4 pixels with stride 2 match plain loops', () => {
      const ofFour = inTiles.map(
        ({ dilation: _, ...rest }): Sizes => ({
          ...{ ...rest, filter: [4, 4], stride: [2, 2], dilation: [1, 1] },
          ...{ height: rest.height + 20, width: rest.width + 24 },
        }),
      );
      agrees(ofFour, uniform, () => TOLERANCE, 30);
    });

    it('convolutions whose inputs are read in place match plain loops', () => {
      agrees(inRows, uniform, () => TOLERANCE, 200);
      agrees(inRows, whole, () => 0, 100);
    });

    it('convolutions of rows of 7 and 5 taps with stride 2 match plain loops', () => {
      const ofRows = inRows.map(
        ({ filter, ...rest }): Sizes => ({
          ...rest,
          filter: [filter[0]! % 2 === 0 ? 5 : 1, 7],
          stride: [1, 2],
        }),
      );
      const square = ofRows.map(
        (given): Sizes => ({ ...given, height: given.height + 6, filter: [5, 7], stride: [2, 2] }),
      );
      agrees(fc.oneof(ofRows, square), whole, () => 0, 100);
    });

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

    const poolings: ['maxPool' | 'avgPool', of: (values: number[]) => number][] = [
      ['maxPool', (values) => Math.max(...values)],
      ['avgPool', (values) => values.reduce((sum, value) => sum + value) / values.length],
    ];
    for (const [name, of] of poolings)
      it(`${name} computes each window, and keeps NaN`, (t) => {
        const { [name]: compute } = loops();
        if (!compute) return t.skip('it has none of its own');
        fc.assert(
          fc.property(pooling, fc.nat(), (pool, at) => {
            const { x, dy, geometry } = pooled(pool);
            x[at % x.length] = NaN;
            const y = new Float32Array(dy.length);
            compute(geometry, x, y);
            const expected = y.map((_, i) => of(windowOf(pool, i).map((place) => x[place]!)));
            assert.deepEqual(Array.from(y), Array.from(expected));
          }),
          { seed: 42 },
        );
      });

    it('maximum pooling sends each gradient to the first maximum of its window, or to its first pixel', (t) => {
      const { maxPoolGradient } = loops();
      if (!maxPoolGradient) return t.skip('it has none of its own');
      fc.assert(
        fc.property(pooling, fc.nat(), (pool, at) => {
          const { x, dy, geometry } = pooled(pool);
          x[at % x.length] = NaN;
          const expected = new Float32Array(x.length);
          dy.forEach((gradient, at) => {
            let best = -1;
            for (const place of windowOf(pool, at)) if (best < 0 || x[place]! > x[best]!) best = place;
            expected[best]! += gradient;
          });
          const dx = new Float32Array(x.length).fill(7);
          maxPoolGradient(geometry, x, dy, dx);
          assert.deepEqual(dx, expected);
        }),
        { seed: 42 },
      );
    });

    it('average pooling distributes each gradient over the pixels of its window', (t) => {
      const { avgPoolGradient } = loops();
      if (!avgPoolGradient) return t.skip('it has none of its own');
      fc.assert(
        fc.property(pooling, (pool) => {
          const { x, dy, geometry } = pooled(pool);
          const expected = new Float64Array(x.length);
          dy.forEach((gradient, at) => {
            const window = windowOf(pool, at);
            for (const place of window) expected[place]! += gradient / window.length;
          });
          const dx = new Float32Array(x.length).fill(7);
          avgPoolGradient(geometry, dy, dx);
          dx.forEach((value, i) => {
            near(value, expected[i]!, 1e-6);
          });
        }),
        { seed: 42 },
      );
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

/** Two images of 8 x 6 pixels, and windows that may reach over edges but always have a pixel inside. */
interface Pools {
  size: [number, number];
  stride: [number, number];
  /** True for a padding of one pixel less than a window at the top and at the left. */
  isPadded: boolean;
  channels: number;
  seed: number;
}

const BATCH = 2;
const [HEIGHT, WIDTH] = [8, 6];

const pooling: fc.Arbitrary<Pools> = fc.record({
  size: one(fc.integer({ min: 1, max: 3 })),
  stride: one(fc.integer({ min: 1, max: 3 })),
  isPadded: fc.boolean(),
  channels: fc.integer({ min: 1, max: 9 }),
  seed: fc.nat(1000),
});

function outputsOf({ stride }: Pools): [rows: number, columns: number] {
  return [Math.floor((HEIGHT - 1) / stride[0]) + 1, Math.floor((WIDTH - 1) / stride[1]) + 1];
}

function pooled(pool: Pools): { x: Float32Array; dy: Float32Array; geometry: Int32Array } {
  const { size, stride, isPadded, channels, seed } = pool;
  const outputs = outputsOf(pool);
  const padding = size.map((length) => (isPadded ? length - 1 : 0));
  return {
    x: whole(BATCH * HEIGHT * WIDTH * channels, seed),
    dy: whole(BATCH * outputs[0] * outputs[1] * channels, seed + 1),
    geometry: Int32Array.of(BATCH, HEIGHT, WIDTH, channels, ...outputs, ...size, ...stride, ...padding),
  };
}

/** Indexes of the input values in the window of an output. */
function windowOf(pool: Pools, at: number): number[] {
  const { size, stride, isPadded, channels } = pool;
  const before = (axis: 0 | 1) => (isPadded ? size[axis] - 1 : 0);
  const [rows, columns] = outputsOf(pool);
  const pixel = Math.floor(at / channels);
  const n = Math.floor(pixel / columns / rows);
  const top = (Math.floor(pixel / columns) % rows) * stride[0] - before(0);
  const left = (pixel % columns) * stride[1] - before(1);
  const places: number[] = [];
  for (let i = Math.max(0, top); i < Math.min(HEIGHT, top + size[0]); i++)
    for (let j = Math.max(0, left); j < Math.min(WIDTH, left + size[1]); j++)
      places.push(((n * HEIGHT + i) * WIDTH + j) * channels + (at % channels));
  return places;
}

function near(actual: number, expected: number, relative: number): void {
  // Written so that a NaN fails.
  const right = Math.abs(actual - expected) <= relative * Math.max(1, Math.abs(expected));
  assert.ok(right, `${actual}, not ${expected}`);
}
