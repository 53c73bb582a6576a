/** Which pixels of a source a warp needs, and what it refuses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allocatePixels,
  buildControlGrid,
  type ControlGrid,
  sourceExtent,
  warp,
} from '../../src/raster/index.js';
import { gridOf, positionOf } from './grids.js';

/** A grid with nodes at random. */
const scattered = (width: number, height: number, step: number, seed: number) =>
  gridOf(width, height, step, () => [0, 0], { jitter: 100, seed });

test('the extent of a source is that of the centres of all pixels', () => {
  const side = fc.integer({ min: 1, max: 14 });
  fc.assert(
    fc.property(side, side, fc.constantFrom(1, 2, 4, 8), fc.nat(1e6), (width, height, step, seed) => {
      const grid = scattered(width, height, step, seed);
      const expected = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
      for (let row = 0; row < height; row++)
        for (let column = 0; column < width; column++) {
          const [x, y] = positionOf(grid, column, row);
          expected.left = Math.min(expected.left, x);
          expected.right = Math.max(expected.right, x);
          expected.top = Math.min(expected.top, y);
          expected.bottom = Math.max(expected.bottom, y);
        }
      const found = sourceExtent(grid);
      for (const key of ['left', 'top', 'right', 'bottom'] as const)
        assert.ok(
          Math.abs(found[key] - expected[key]) < 1e-9,
          `${key}: ${found[key]} is not ${expected[key]}`,
        );
    }),
    { seed: 42, numRuns: 200 },
  );
});

test('undefined grid points are ignored, and so are those without weight', () => {
  const grid = scattered(5, 9, 4, 3);
  const whole = sourceExtent(grid);
  // Columns 0 to 4 and rows 0 to 8 end on nodes, so the last nodes of each row and column have no part.
  for (let j = 0; j < grid.rows; j++)
    for (let i = 0; i < grid.columns; i++)
      if (i === 2 || j === 3) grid.x[j * grid.columns + i] = grid.y[j * grid.columns + i] = NaN;
  assert.deepEqual(sourceExtent(grid), whole);
  grid.y.fill(NaN);
  assert.deepEqual(sourceExtent(grid), {
    left: Infinity,
    top: Infinity,
    right: -Infinity,
    bottom: -Infinity,
  });
});

const SCENE = { rasterWidth: 40, rasterHeight: 30, nodata: undefined };
const value = (column: number, row: number) => 1 + 40 * row + column;

/** A destination of pixels as large as those of the source, its corner at (x, y) of the source. */
const plainGrid = (width: number, height: number, x: number, y: number) =>
  buildControlGrid(
    { bounds: { west: x, east: x + width, north: -y, south: -y - height }, width, height },
    (u, v) => [u, v],
    { originX: 0, originY: 0, xx: 1, xy: 0, yx: 0, yy: -1 },
  );

type Window = [column: number, row: number, width: number, height: number];

function warpFrom(
  [column, row, width, height]: Window,
  grid: ControlGrid,
  resampling: 'nearest' | 'bilinear',
) {
  const pixels = Uint16Array.from({ length: width * height }, (_, i) =>
    value(column + (i % width), row + Math.floor(i / width)),
  );
  const out = new Uint16Array(grid.width * grid.height);
  const valid = new Uint8Array(out.length).fill(1);
  const source = { pixels, window: { column, row, width, height }, ...SCENE };
  warp(resampling, source, grid, out, valid);
  return { out: [...out], valid: [...valid] };
}

test('a window is large enough if it has every pixel of the scene that is needed', () => {
  const refused = { code: 'TW_RASTER_WINDOW_OUTSIDE' };
  const inside = plainGrid(8, 6, 10, 12);
  // The complete window, and windows that lack a column or row on one side.
  for (const [resampling, [column, row, width, height]] of [
    ['nearest', [10, 12, 8, 6]],
    ['bilinear', [10, 12, 8, 6]],
  ] as ['nearest' | 'bilinear', Window][]) {
    const expected = Array.from({ length: 48 }, (_, i) => value(10 + (i % 8), 12 + Math.floor(i / 8)));
    for (const window of [
      [column, row, width, height],
      [column - 3, row - 2, width + 5, height + 7],
      [0, 0, 40, 30],
      // The same grid again with another window.
      [column, row, width, height + 1],
      [column, row - 1, width, height + 1],
      [column - 1, row, width + 1, height],
    ] as Window[])
      assert.deepEqual(warpFrom(window, inside, resampling).out, expected);
    for (const window of [
      [column + 1, row, width - 1, height],
      [column, row + 1, width, height - 1],
      [column, row, width - 1, height],
      [column, row, width, height - 1],
    ] as Window[])
      assert.throws(() => warpFrom(window, inside, resampling), refused);
  }
  assert.throws(() => warpFrom([11, 12, 7, 6], inside, 'nearest'), {
    message: /window of 7 x 6 pixels at 11, 12 of a scene .*all pixels from 10.5, 12.5 to 17.5, 17.5/,
  });
  // Bilinear needs neighbours.
  const between = plainGrid(8, 6, 10.4, 12.4);
  assert.throws(() => warpFrom([10, 12, 8, 6], between, 'bilinear'), refused);
  assert.ok(warpFrom([10, 12, 9, 7], between, 'bilinear'));
  assert.ok(warpFrom([10, 12, 8, 6], between, 'nearest'));
  const before = plainGrid(8, 6, 9.6, 11.6);
  assert.throws(() => warpFrom([10, 11, 8, 7], before, 'bilinear'), refused);
  assert.throws(() => warpFrom([9, 12, 9, 6], before, 'bilinear'), refused);
});

test('a window need not cover pixels beyond the scene', () => {
  // The destination reaches beyond each corner of the scene.
  for (const [x, y, window] of [
    [-5, -4, [0, 0, 5, 4]],
    [35, 26, [33, 24, 7, 6]],
    // It lies completely beyond the scene, so any window is large enough.
    [-50, 5, [20, 10, 2, 2]],
    [5, -50, [20, 10, 2, 2]],
    [100, 5, [20, 10, 2, 2]],
    [5, 100, [20, 10, 2, 2]],
  ] as [number, number, Window][]) {
    const { out, valid } = warpFrom(window, plainGrid(9, 7, x, y), 'nearest');
    for (let i = 0; i < 63; i++) {
      const [column, row] = [x + (i % 9), y + Math.floor(i / 9)];
      const isInside = column >= 0 && row >= 0 && column < 40 && row < 30;
      assert.equal(valid[i], isInside ? 1 : 0);
      assert.equal(out[i], isInside ? value(column, row) : 0);
    }
  }
});

test('arrays of different sizes are refused', () => {
  const grid = plainGrid(4, 3, 0, 0);
  const window = { column: 0, row: 0, width: 6, height: 5 };
  const call = (pixels: number, out: number, valid: number, type: 'uint16' | 'int16' = 'uint16') =>
    warp(
      'nearest',
      { pixels: new Uint16Array(pixels), window, ...SCENE, rasterWidth: 6, rasterHeight: 5 },
      grid,
      allocatePixels(type, out),
      new Uint8Array(valid),
    );
  assert.equal(call(30, 12, 12), 12);
  const refused = (message: RegExp) => ({ code: 'TW_RASTER_INVALID_IMAGE', message });
  assert.throws(() => call(30, 12, 12, 'int16'), refused(/4 x 3 pixels of uint16 do not fit 12 of int16/));
  assert.throws(() => call(30, 11, 12), refused(/4 x 3/));
  assert.throws(() => call(30, 12, 11), refused(/4 x 3/));
  assert.throws(() => call(29, 12, 12), refused(/6 x 5 from 29/));
});

test('a control grid is refined if some of its points are undefined', () => {
  const [width, height] = [64, 64];
  const bounds = { west: 0, east: width, north: 0, south: -height };
  const transform = { originX: 0, originY: 0, xx: 1, xy: 0, yx: 0, yy: -1 };
  const nowhere = (x: number, y: number): [number, number] => (x > 60 ? [NaN, NaN] : [x, y]);
  assert.equal(buildControlGrid({ bounds, width, height }, (x, y) => [x, y], transform).step, 32);
  const { step } = buildControlGrid({ bounds, width, height }, nowhere, transform);
  assert.ok(step < 32, `step ${step}`);
  // A projection that bends needs smaller squares, along rows and along columns.
  const bent = (x: number, y: number): [number, number] => [x + 0.01 * x * y * y, y];
  assert.ok(buildControlGrid({ bounds, width, height }, bent, transform).step < 8);
  assert.ok(
    buildControlGrid({ bounds, width, height }, (x, y) => [x, y + 0.001 * x * x], transform).step < 32,
  );
});
