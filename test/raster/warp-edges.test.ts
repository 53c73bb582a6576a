/** Warped pixels at edges: of source pixels, of the window, of the data and of the range of a type. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allocatePixels,
  type ControlGrid,
  DATA_TYPES,
  type DataType,
  fillValueFor,
  type PixelArray,
  type Resampling,
  type Window,
  warp,
} from '../../src/raster/index.js';
import { isFloat } from '../../src/raster/pixels/data-types.js';
import { gridOf, plainWarp } from './grids.js';
import { random } from './images.js';

function warpBy(
  resampling: Resampling,
  pixels: PixelArray,
  window: Window,
  nodata: number | undefined,
  grid: ControlGrid,
  simd: boolean,
  dataType: DataType,
) {
  const out = allocatePixels(dataType, grid.width * grid.height);
  const valid = new Uint8Array(out.length).fill(1);
  const [rasterWidth, rasterHeight] = [window.column + window.width, window.row + window.height];
  const source = { pixels, window, rasterWidth, rasterHeight, nodata };
  const count = warp(resampling, source, grid, out, valid, simd);
  assert.equal(count, valid.filter((value) => value === 1).length);
  return { out: [...out], valid: [...valid] };
}

test('a centre on an edge between pixels belongs to the right and lower pixel, in spite of rounding', () => {
  const pixels = Uint8Array.from({ length: 100 }, (_, i) => i + 1);
  const window = { column: 0, row: 0, width: 10, height: 10 };
  for (const noise of [0, -2e-11, 2e-11])
    for (const resampling of ['nearest', 'bilinear'] as const) {
      const grid = gridOf(9, 9, 8, (column, row) => [column + 1 + noise, row + 1 + noise]);
      const { out } = warpBy(resampling, pixels, window, undefined, grid, false, 'uint8');
      if (resampling === 'nearest')
        for (const [i, value] of out.entries()) assert.equal(value, 12 + (i % 9) + 10 * Math.floor(i / 9));
      // A mean is valid if that pixel holds data.
      const holes = pixels.map((value, i) => ((i % 10) + Math.floor(i / 10) === 5 ? 0 : value));
      const { valid } = warpBy(resampling, holes, window, 0, grid, false, 'uint8');
      for (const [i, value] of valid.entries())
        assert.equal(value, (i % 9) + Math.floor(i / 9) === 3 ? 0 : 1, `${resampling}, pixel ${i}`);
    }
});

test('a mean equal to the nodata value becomes the next number', () => {
  const size = 40;
  const window = { column: 0, row: 0, width: size, height: size };
  for (const dataType of DATA_TYPES)
    for (const simd of [true, false])
      for (const holes of [7, Infinity])
        for (const first of [0, 5]) {
          // Columns of 6 and of 8: centres lie between them, so that most means are 7.
          const pixels = allocatePixels(dataType, size * size).map((_, i) =>
            i % holes === 3 ? 7 : 6 + 2 * (i % 2),
          );
          const at = (x: number, y: number) => [x + first - 0.5, y + first - 0.5] as [number, number];
          const grid = gridOf(20, 20, 4, (x, y) => at(x + 0.5, y + 0.5));
          const { out, valid } = warpBy('bilinear', pixels, window, 7, grid, simd, dataType);
          const expected = plainWarp('bilinear', pixels, size, size, 7, at, 20, 20).map((mean) => {
            if (mean === undefined) return 7;
            const value = isFloat(dataType) ? Math.fround(mean) : Math.floor(mean + 0.5);
            return value === 7 ? 6 : value;
          });
          assert.ok(expected.filter((value) => value === 6).length > 100);
          for (const [i, value] of out.entries()) assert.ok(Math.abs(value - expected[i]!) < 1e-5);
          assert.deepEqual(
            valid,
            expected.map((value) => Number(value !== 7)),
          );
        }
});

/** Half a unit, and the error of integer weights. */
const toleranceOf = (dataType: DataType) => (isFloat(dataType) ? 0.02 : 0.7);

interface Case {
  pixels: PixelArray;
  dataType: DataType;
  /** Size of the source, and of the destination. */
  size: [width: number, height: number];
  outSize: [width: number, height: number];
  step: number;
  at: (column: number, row: number) => [x: number, y: number];
  nodata?: number | undefined;
  simd?: boolean;
}

/** Compares each pixel and its validity with a plain warp. */
function compareWithPlain(
  resampling: Resampling,
  { pixels, dataType, size, outSize, step, at, nodata, simd }: Case,
) {
  const grid = gridOf(...outSize, step, (column, row) => at(column + 0.5, row + 0.5));
  const window = { column: 0, row: 0, width: size[0], height: size[1] };
  const { out, valid } = warpBy(resampling, pixels, window, nodata, grid, simd ?? false, dataType);
  const wanted = plainWarp(resampling, pixels, ...size, nodata, at, ...outSize);
  const tolerance = resampling === 'nearest' ? 0 : toleranceOf(dataType);
  for (const [i, value] of wanted.entries()) {
    assert.equal(valid[i], value === undefined ? 0 : 1, `pixel ${i}`);
    const expected = value ?? fillValueFor(dataType, nodata);
    assert.ok(
      Object.is(out[i], expected) || Math.abs(out[i]! - expected) <= tolerance,
      `pixel ${i} is ${out[i]}, not ${expected}`,
    );
  }
}

test('pixels close to the edges of a window agree with a plain implementation', () => {
  // Positions that lie neither on edges nor on centres of pixels, some of them within a hundredth of a pixel.
  const start = fc
    .tuple(
      fc.integer({ min: -3, max: 10 }),
      fc.constantFrom(0, 0.5),
      fc.constantFrom(0.0051, -0.0049, 0.3137),
    )
    .map(([whole, base, beside]) => whole + base + beside);
  const scale = fc.constantFrom(1, -1, 0.3, -1.7);
  const side = fc.integer({ min: 1, max: 9 });
  fc.assert(
    fc.property(
      fc.constantFrom(...DATA_TYPES),
      fc.constantFrom<Resampling>('nearest', 'bilinear'),
      fc.tuple(side, side),
      fc.tuple(fc.integer({ min: 1, max: 21 }), side),
      fc.constantFrom(1, 4, 8, 32),
      fc.tuple(start, start, scale, scale),
      fc.constantFrom(0, 0.2),
      fc.boolean(),
      fc.nat(1e6),
      (dataType, resampling, size, outSize, step, [x, y, scaleX, scaleY], holes, simd, seed) => {
        const next = random(seed);
        const nodata = seed % 2 ? 7 : undefined;
        // Large differences between neighbours, and for 32 bits numbers that are large themselves.
        const range = dataType.endsWith('int8') ? 100 : 1000;
        const offset = /int32|float64/.test(dataType) ? 2 ** 30 : 20;
        const pixels = allocatePixels(dataType, size[0] * size[1]).map(() => {
          if (next() < holes) return nodata ?? (isFloat(dataType) ? NaN : offset);
          return offset + range * Math.round(next());
        });
        const at = (column: number, row: number) =>
          [x + scaleX * (column - 0.5), y + scaleY * (row - 0.5)] as [number, number];
        compareWithPlain(resampling, { pixels, dataType, size, outSize, step, at, nodata, simd });
      },
    ),
    { seed: 42, numRuns: 400 },
  );
});

test('a mean beside the last centre of a row or column does not use the next pixel in memory', () => {
  const size: [number, number] = [6, 5];
  for (const dataType of ['uint8', 'uint16', 'float32'] as const) {
    // The first and the last columns and rows differ as much as can be.
    const pixels = allocatePixels(dataType, 30).map((_, i) => (i % 6 < 3 === i < 15 ? 250 : 1));
    for (const wayX of [1, -1])
      for (const wayY of [1, -1])
        for (const beside of [0.0051, -0.0049, 0.0151, -0.0149]) {
          const from = (way: number, length: number) => (way > 0 ? -1.5 : length + 0.5) + beside;
          const at = (column: number, row: number) =>
            [from(wayX, 6) + wayX * (column + 0.5), from(wayY, 5) + wayY * (row + 0.5)] as [number, number];
          compareWithPlain('bilinear', { pixels, dataType, size, outSize: [9, 8], step: 16, at });
        }
  }
});

test('rows that leave a window on any side use its nearest pixels', () => {
  const size: [number, number] = [12, 10];
  const pixels = Uint8Array.from({ length: 120 }, (_, i) => i + 1);
  for (const [across, down] of [
    [0.41, 0.73],
    [-0.41, 0.73],
    [0.73, -0.41],
    [-0.41, -0.73],
  ] as const)
    for (const [x, y] of [
      [6.017, 5.023],
      [1.017, 5.023],
      [10.517, 5.023],
      [6.017, 1.023],
      [6.017, 8.523],
      [-1.517, -1.023],
      [13.517, 11.023],
    ] as const)
      for (const step of [4, 16]) {
        const at = (column: number, row: number) =>
          [x + across * column - 0.13 * row, y + down * column + 0.17 * row] as [number, number];
        compareWithPlain('nearest', { pixels, dataType: 'uint8', size, outSize: [11, 6], step, at });
      }
});

test('squares across thousands of source pixels have correct means', () => {
  const window = { column: 0, row: 0, width: 2600, height: 360 };
  const along = (i: number) => i % 2600;
  const down = (i: number) => 20 + Math.floor(i / 2600);
  for (const dataType of ['uint16', 'float32'] as const) {
    const across = allocatePixels(dataType, 2600 * 360).map((_, i) => along(i));
    const upright = allocatePixels(dataType, 2600 * 360).map((_, i) => down(i));
    for (const [perColumn, perRow] of [
      [68.3, 10.2],
      [-68.3, 10.2],
      [78.9, 0.4],
      [20.1, -9.9],
    ] as const) {
      const [left, top] = [perColumn > 0 ? 9 : 2590, perRow > 0 ? 8 : 350];
      const grid = gridOf(32, 2, 32, (column, row) => [
        left + perColumn * column,
        top + perRow * column + row,
      ]);
      for (const [pixels, axis] of [
        [across, 0],
        [upright, 1],
      ] as const) {
        const { out } = warpBy('bilinear', pixels, window, undefined, grid, false, dataType);
        for (const [i, value] of out.entries()) {
          const column = i % 32;
          const x = left + perColumn * column - 0.5;
          const y = 20 + top + perRow * column + Math.floor(i / 32) - 0.5;
          assert.ok(
            Math.abs(value - [x, y][axis]!) <= toleranceOf(dataType),
            `pixel ${i}: ${value}, ${x}, ${y}`,
          );
        }
      }
    }
  }
});

test('bands over one grid and windows of one size do not disturb each other', () => {
  const grid = gridOf(24, 20, 8, (column, row) => [column + 10.3, row + 12.4]);
  const scene = Uint16Array.from({ length: 60 * 60 }, (_, i) => 1 + i);
  const windowed = ({ column, row, width, height }: Window) =>
    Uint16Array.from(
      { length: width * height },
      (_, i) => scene[(row + Math.floor(i / width)) * 60 + column + (i % width)]!,
    );
  const run = (window: Window, own: ControlGrid, pixels = windowed(window)) =>
    warpBy('bilinear', pixels, window, 0, own, true, 'uint16');
  const first = { column: 5, row: 6, width: 35, height: 35 };
  const wanted = run(first, { ...grid });
  assert.ok(wanted.valid.every((value) => value === 1));
  // All of a band is empty, then rows of it, and the next band is not.
  assert.ok(run(first, grid, new Uint16Array(35 * 35)).valid.every((value) => value === 0));
  assert.deepEqual(run(first, grid), wanted);
  run(
    first,
    grid,
    windowed(first).map((value, i) => (i < 35 * 20 ? 0 : value)),
  );
  assert.deepEqual(run(first, grid), wanted);
  // Some pixels lie beyond the smaller windows, which end with the scene.
  const windows = [{ column: 8 }, { row: 10 }, { width: 15 }, { height: 15 }].map((part) => ({
    ...first,
    ...part,
  }));
  const fresh = windows.map((window) => run(window, { ...grid }));
  run(first, grid);
  for (const [i, window] of windows.entries()) {
    assert.deepEqual(run(window, grid), fresh[i]);
    assert.deepEqual(run(first, grid), wanted);
  }
});
