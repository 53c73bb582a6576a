import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allocatePixels,
  type ControlGrid,
  type DataType,
  type PixelArray,
  warp,
} from '../../src/raster/index.js';
import { bilinearWasm } from '../../src/raster/warp/bilinear-wasm.js';
import { prepareSquares } from '../../src/raster/warp/squares.js';
import { affine, gridOf } from './grids.js';
import { assertSamePixels, random } from './images.js';

/** Values from the entire range of the type, with many at its ends, at the nodata value (`hole`) and next to it. */
function noise(dataType: DataType, size: number, hole: number, holes: number, seed: number): PixelArray {
  const next = random(seed);
  const shift = dataType.startsWith('u') ? 0 : 0.5;
  const range = dataType.endsWith('16') ? 2 ** 16 : 256;
  const lowest = -shift * range;
  return allocatePixels(dataType, size).map(() => {
    const kind = next();
    if (kind < holes) return hole;
    if (kind < holes + 0.05) return hole + 1;
    if (kind < holes + 0.1) return next() < 0.5 ? lowest : lowest + range - 1;
    return Math.floor(lowest + next() * range);
  });
}

/** 1 for rounding, and the error of weights of 13 bits between the lowest and the highest pixel. Other types have one kernel. */
function toleranceOf(dataType: DataType, pixels: PixelArray): number {
  if (!/^u?int(8|16)$/.test(dataType)) return 0;
  const range = Math.max(...pixels) - Math.min(...pixels);
  return 1 + range * 2 ** -13;
}

const SIZES = { width: 71, height: 53 };

/** Warps a window of noise by both kernels; returns the number of squares that the SIMD kernel did. */
function compareKernels(
  dataType: DataType,
  nodata: number | undefined,
  holes: number,
  grid: ControlGrid,
  at: number,
  seed: number,
): number {
  const pixels = noise(dataType, SIZES.width * SIZES.height, nodata ?? 7, holes, seed);
  const window = { column: at, row: at, ...SIZES };
  const source = { pixels, window, rasterWidth: at + SIZES.width, rasterHeight: at + SIZES.height, nodata };
  const run = (simd: boolean) => {
    const out = allocatePixels(dataType, grid.width * grid.height);
    const valid = new Uint8Array(out.length).fill(1);
    const count = warp('bilinear', source, grid, out, valid, simd);
    return { out, valid, count };
  };
  const found = run(true);
  const wanted = run(false);
  assertSamePixels(found.valid, wanted.valid);
  const tolerance = toleranceOf(dataType, pixels);
  for (const [i, value] of found.out.entries()) {
    const difference = Math.abs(value - wanted.out[i]!);
    // A mean equal to the nodata value is moved by one.
    const isMoved = nodata !== undefined && Math.abs(value - nodata) <= tolerance;
    assert.ok(
      Object.is(value, wanted.out[i]) || difference <= tolerance + (isMoved ? 1 : 0),
      `pixel ${i} is ${value}, not ${wanted.out[i]}`,
    );
  }
  assert.equal(found.count, wanted.count);
  assert.equal(
    found.count,
    found.valid.reduce((sum, flag) => sum + flag, 0),
  );
  const squares = prepareSquares(grid, window);
  const before = squares.pending.filter((rows) => rows !== 0).length;
  bilinearWasm({ pixels, ...window, nodata: nodata ?? Number.NaN }, grid, squares, found.out, 0);
  return before - squares.pending.filter((rows) => rows !== 0).length;
}

test('the SIMD kernel agrees with the plain one up to rounding', () => {
  let fast = 0;
  fc.assert(
    fc.property(
      fc.constantFrom<DataType>('uint8', 'int8', 'uint16', 'int16', 'uint32', 'float32'),
      fc.constantFrom(undefined, 0, 7, 255, 65_535, -128),
      fc.constantFrom(0, 0.0005, 0.01, 0.5, 1),
      fc.tuple(fc.integer({ min: 1, max: 110 }), fc.integer({ min: 1, max: 90 })),
      fc.constantFrom(1, 4, 8, 16, 32),
      fc.record({
        // No rotation; a small one, so that most neighbouring pixels lie between the same rows; and any.
        turn: fc.oneof(
          fc.constant(0),
          fc.double({ min: -0.06, max: 0.06, noNaN: true }),
          fc.double({ min: -3.2, max: 3.2, noNaN: true }),
        ),
        scale: fc.double({ min: 0.05, max: 3, noNaN: true }),
        shear: fc.oneof(fc.constant(0), fc.double({ min: -1, max: 1, noNaN: true })),
        left: fc.double({ min: -20, max: 70, noNaN: true }),
        top: fc.double({ min: -20, max: 60, noNaN: true }),
        jitter: fc.constantFrom(0, 3),
      }),
      fc.integer({ min: -300, max: 0 }),
      fc.integer(),
      (
        dataType,
        nodata,
        holes,
        [width, height],
        step,
        { turn, scale, shear, left, top, jitter },
        at,
        seed,
      ) => {
        const map = affine(turn, scale, shear, left + at, top + at);
        const nowhere = jitter > 0 ? 0.02 : 0;
        const grid = gridOf(width, height, step, map, { jitter, nowhere, seed });
        fast += compareKernels(dataType, nodata, holes, grid, at, seed);
      },
    ),
    { seed: 42, numRuns: 600 },
  );
  assert.ok(fast > 100, `the SIMD kernel did only ${fast} squares`);
});

test('both kernels agree for a few squares in the middle of a window', () => {
  let fast = 0;
  for (const dataType of ['uint8', 'int8', 'uint16', 'int16'] as const)
    for (const nodata of [undefined, 7])
      for (const [turn, step] of [
        [0, 32],
        [0.05, 8],
        [-1.2, 16],
      ] as const) {
        const grid = gridOf(32, 16, step, affine(turn, 0.45, 0.1, 7.3, 9.8), { jitter: 0.5, seed: step });
        fast += compareKernels(dataType, nodata, 0.001, grid, -20, step);
      }
  assert.ok(fast > 40, `the SIMD kernel did only ${fast} squares`);
});

test('means are within one unit of exact rounding', () => {
  const [width, height, side] = [96, 64, 180];
  fc.assert(
    fc.property(
      fc.constantFrom<[DataType, number]>(['uint8', 255], ['int8', 127], ['uint16', 9000], ['int16', 9000]),
      fc.double({ min: -3.2, max: 3.2, noNaN: true }),
      fc.double({ min: 0.1, max: 0.7, noNaN: true }),
      fc.integer(),
      ([dataType, highest], turn, scale, seed) => {
        const next = random(seed);
        const pixels = allocatePixels(dataType, side * side).map(() => 1 + Math.floor(next() * highest));
        const map = affine(turn, scale, 0, 90, 90);
        const out = allocatePixels(dataType, width * height);
        const window = { column: 0, row: 0, width: side, height: side };
        const source = { pixels, window, rasterWidth: side, rasterHeight: side, nodata: 0 };
        const grid = gridOf(width, height, 32, map);
        const count = warp('bilinear', source, grid, out, new Uint8Array(out.length));
        assert.equal(count, out.length);
        for (let o = 0; o < out.length; o++) {
          const [x, y] = map(o % width, Math.floor(o / width)).map((value) => value - 0.5) as [
            number,
            number,
          ];
          const at = Math.floor(y) * side + Math.floor(x);
          const along = x % 1;
          const upper = pixels[at]! * (1 - along) + pixels[at + 1]! * along;
          const lower = pixels[at + side]! * (1 - along) + pixels[at + side + 1]! * along;
          const exact = Math.round(upper * (1 - (y % 1)) + lower * (y % 1));
          assert.ok(Math.abs(out[o]! - exact) <= 1, `pixel ${o} is ${out[o]}, not ${exact}`);
        }
      },
    ),
    { seed: 42, numRuns: 100 },
  );
});
