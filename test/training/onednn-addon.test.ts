/** The addon over oneDNN against plain loops. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { loadOneDnn, type OneDnn } from '../../src/training/engine/onednn/addon.js';
import { FORWARD, TO_FILTER, TO_INPUT } from '../../src/training/engine/wasm/loops.js';

let dnn: OneDnn | undefined;
let skip: string | false = false;
try {
  dnn = loadOneDnn();
} catch (error) {
  skip = (error as Error).message;
}

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

/** Undefined where the filter does not fit into the image. */
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

/** Each product of an input and a weight that goes into an output. */
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

test('convolutions and their gradients are those of plain loops', { skip }, () => {
  fc.assert(
    fc.property(sizes, fc.nat(1000), (given, seed) => {
      const shape = shapeOf(given);
      fc.pre(shape !== undefined);
      const s = shape!;
      const x = whole(s.batch * s.height * s.width * s.channels, seed);
      const filter = whole(s.filter[0] * s.filter[1] * s.channels * s.outputs, seed + 1);
      const dy = whole(s.batch * s.rows * s.columns * s.outputs, seed + 2);
      const bias = whole(s.outputs, seed + 3);
      const y = Float32Array.from(dy, (_, i) => bias[i % s.outputs]!);
      const dx = new Float32Array(x.length);
      const dw = new Float32Array(filter.length);
      forEachProduct(s, (atX, atFilter, atY) => {
        y[atY]! += x[atX]! * filter[atFilter]!;
        dx[atX]! += filter[atFilter]! * dy[atY]!;
        dw[atFilter]! += x[atX]! * dy[atY]!;
      });
      // What lay in the memory before must not matter.
      const [toY, toDx, toDw] = [y, dx, dw].map(({ length }) => new Float32Array(length).fill(NaN));
      const geometry = geometryOf(s);
      dnn!.convolve(FORWARD, geometry, x, filter, toY!, bias);
      dnn!.convolve(TO_INPUT, geometry, toDx!, filter, dy, null);
      dnn!.convolve(TO_FILTER, geometry, x, toDw!, dy, null);
      assert.deepEqual(toY, y);
      assert.deepEqual(toDx, dx);
      assert.deepEqual(toDw, dw);
    }),
    { seed: 42, numRuns: 300 },
  );
});

test('products are those of plain loops, also of transposed matrices', { skip }, () => {
  const length = fc.integer({ min: 1, max: 20 });
  fc.assert(
    fc.property(length, length, length, fc.boolean(), fc.boolean(), (m, n, k, transposeA, transposeB) => {
      const [a, b] = [whole(m * k, 1), whole(k * n, 2)];
      const c = new Float32Array(m * n);
      for (let i = 0; i < m; i++)
        for (let j = 0; j < n; j++)
          for (let l = 0; l < k; l++)
            c[i * n + j]! += a[transposeA ? l * m + i : i * k + l]! * b[transposeB ? j * k + l : l * n + j]!;
      const product = new Float32Array(m * n).fill(NaN);
      dnn!.multiply(Int32Array.of(m, n, k, Number(transposeA), Number(transposeB)), a, b, product);
      assert.deepEqual(product, c);
    }),
    { seed: 42 },
  );
});

test('sums of channels', { skip }, () => {
  const [rows, columns] = [1000, 7];
  const x = whole(rows * columns, 1);
  const expected = new Float32Array(columns);
  x.forEach((value, i) => {
    expected[i % columns]! += value;
  });
  const sums = new Float32Array(columns).fill(NaN);
  dnn!.columnSums(rows, columns, x, sums);
  assert.deepEqual(sums, expected);
});

test('more geometries than are kept come out right when they come again', { skip }, () => {
  const run = (width: number) => {
    const x = new Float32Array(width).fill(2);
    const y = new Float32Array(width);
    dnn!.convolve(
      FORWARD,
      Int32Array.of(1, 1, width, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
      x,
      Float32Array.of(3),
      y,
      null,
    );
    assert.ok(y.every((value) => value === 6));
  };
  for (let round = 0; round < 2; round++) for (let width = 1; width <= 600; width++) run(width);
});

test('arrays that do not fit are refused, and nothing is written', { skip }, () => {
  const geometry = Int32Array.of(1, 4, 4, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1);
  const [x, filter, y] = [new Float32Array(16), new Float32Array(9), new Float32Array(16).fill(7)];
  const convolve = (...[direction, g, ...rest]: Parameters<OneDnn['convolve']>) =>
    dnn!.convolve(direction, g, ...rest);
  assert.throws(
    () => convolve(FORWARD, geometry, x.subarray(1), filter, y, null),
    /15 values in place of 16/,
  );
  assert.throws(
    () => convolve(FORWARD, geometry, x, filter, y, new Float32Array(2)),
    /2 values in place of 1/,
  );
  assert.throws(
    () => convolve(FORWARD, geometry.subarray(1), x, filter, y, null),
    /14 values in place of 15/,
  );
  assert.throws(() => convolve(3, geometry, x, filter, y, null), /no such direction/);
  assert.throws(
    () =>
      convolve(
        FORWARD,
        Int32Array.from(geometry, (n, i) => (i === 5 ? 9 : n)),
        x,
        filter,
        y,
        null,
      ),
    /filter is larger/,
  );
  assert.throws(
    () =>
      convolve(
        FORWARD,
        Int32Array.from(geometry, (n, i) => (i === 7 ? 0 : n)),
        x,
        filter,
        y,
        null,
      ),
    /sizes of a convolution are 1 or more/,
  );
  assert.throws(() => dnn!.multiply(Int32Array.of(2, 2, 2, 0, 0), x, filter, y), /16 values in place of 4/);
  assert.throws(() => dnn!.columnSums(4, 4, [] as never, y.subarray(4, 8)), /a typed array is wanted/);
  assert.ok(y.every((value) => value === 7));
});

test('an installation goes on without the addon, and says what is missing', async (t) => {
  // A copy, since what cannot be built is removed; where it finds the packages of this installation.
  const native = fileURLToPath(new URL('../../../native/', import.meta.url));
  const copy = await mkdtemp(fileURLToPath(new URL('../../native-', import.meta.url)));
  t.after(() => rm(copy, { recursive: true }));
  for (const file of ['build.mjs', 'onednn.cc']) await copyFile(join(native, file), join(copy, file));
  const build = (...flags: string[]) =>
    spawnSync(process.execPath, [join(copy, 'build.mjs'), ...flags], {
      encoding: 'utf8',
      env: { ...process.env, CXX: 'no-such-compiler' },
    });
  const { status, stderr } = build();
  assert.equal(status, 0);
  assert.match(stderr, /no-such-compiler(.|\n)*apt-get install g\+\+ libdnnl-dev/);
  await writeFile(join(copy, 'build', 'onednn.node'), 'of an older version');
  assert.equal(build('--required').status, 1);
  assert.deepEqual(await readdir(join(copy, 'build')), []);
});

test('one pass of ReLU, plain and leaky, and its gradient', { skip }, () => {
  const x = Float32Array.of(-2, -0, 0, 3, NaN, -Infinity, Infinity, 1, -1);
  const dy = whole(x.length, 5);
  for (const alpha of [0, 0.5]) {
    const y = new Float32Array(x.length).fill(7);
    dnn!.leakyRelu(x.length, alpha, x, y);
    assert.deepEqual(
      y,
      x.map((value) => (value < 0 ? (alpha === 0 ? 0 : alpha * value) : value)),
    );
    const dx = new Float32Array(x.length).fill(7);
    dnn!.leakyReluGradient(x.length, alpha, x, dy, dx);
    assert.deepEqual(
      dx.map((value) => value + 0),
      dy.map((value, i) => (x[i]! > 0 ? value : alpha * value) + 0),
    );
  }
});
