/** Control grids of projections that bend, jump or end somewhere, against the exact position of each pixel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { buildControlGrid, sourceExtent, warp } from '../../src/raster/index.js';
import { OFF_MAP } from '../../src/raster/warp/control-grid.js';
import { type PixelMap, positionOf } from './grids.js';
import { random } from './images.js';

/** The grid of a destination by a projection from its pixels to those of the source, and the points that were projected. */
function gridBy(width: number, height: number, map: PixelMap, source?: { width: number; height: number }) {
  const asked: [column: number, row: number][] = [];
  const grid = buildControlGrid(
    { bounds: { west: 0, east: width, north: 0, south: -height }, width, height },
    (x, y) => {
      const at = [x - 0.5, -y - 0.5] as const;
      asked.push([...at]);
      const [u, v] = map(...at);
      return [u, -v];
    },
    { originX: 0, originY: 0, xx: 1, xy: 0, yx: 0, yy: -1 },
    source,
  );
  return { grid, asked };
}

/** The largest distance of a pixel from its exact position, among those that `counts` picks. */
function worstOf(
  width: number,
  height: number,
  map: PixelMap,
  counts = (_x: number, _y: number) => true,
  source?: { width: number; height: number },
) {
  const { grid } = gridBy(width, height, map, source);
  let worst = 0;
  for (let row = 0; row < height; row++)
    for (let column = 0; column < width; column++) {
      const [x, y] = map(column, row);
      const [u, v] = positionOf(grid, column, row);
      if (counts(x, y) || counts(u, v)) worst = Math.max(worst, Math.abs(u - x), Math.abs(v - y));
    }
  return worst;
}

/** The same with columns and rows exchanged, in the destination and in the source. */
const flipped =
  (map: PixelMap): PixelMap =>
  (column, row) => {
    const [x, y] = map(row, column);
    return [y, x];
  };

/** The terms added to x, added to y instead. */
const onOtherAxis =
  (map: PixelMap): PixelMap =>
  (column, row) => [column, row + map(column, row)[0] - column];

test('a nearly linear projection is called once for each grid point, and nine times for each of nine squares', () => {
  for (const [width, height] of [
    [640, 480],
    [330, 90],
    [65, 700],
    [33, 33],
    [1, 1],
  ] as const) {
    const nodes = (Math.ceil(width / 32) + 1) * (Math.ceil(height / 32) + 1);
    for (const bend of [0, 1e-7, -1e-6]) {
      const { grid, asked } = gridBy(width, height, (column, row) => [
        3 + 0.7 * column + bend * column * column,
        0.6 * row - 0.1 * column + bend * column * row,
      ]);
      assert.equal(grid.step, 32);
      assert.ok(asked.length <= nodes + 9 * 9, `${asked.length} points for ${nodes} nodes`);
      // Beyond the last nodes a projection may have no value.
      for (const [column, row] of asked) {
        assert.ok(column >= 0 && column < width + 32);
        assert.ok(row >= 0 && row < height + 32);
      }
    }
  }
});

test('each of the nine tested squares is within the tolerance', () => {
  const size = 330;
  const bump = (at: number) => Math.max(0, at * (32 - at)) / 256;
  for (const i of [0, 5, 10])
    for (const j of [0, 5, 10]) {
      const map: PixelMap = (column, row) => [
        column + 1e-3 * bump(column - 32 * i) * bump(row - 32 * j),
        row,
      ];
      // A fourth of the bend remains in squares of half the size.
      assert.equal(gridBy(size, size, map).grid.step, 16);
      assert.equal(gridBy(size, size, onOtherAxis(map)).grid.step, 16);
    }
});

test('a square is divided if a projection bends too much in its middle or along one of its sides', () => {
  const bends: ((column: number, row: number) => number)[] = [
    (column) => column ** 2,
    (column, row) => column ** 2 - row ** 2,
    (column, row) => column ** 2 * (row / 32),
    (column, row) => column ** 2 * (1 - row / 32),
    (column, row) => (column * row) / 2,
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...bends),
      fc.boolean(),
      fc.boolean(),
      fc.double({ min: 0.2, max: 30, noNaN: true }),
      (bend, isFlipped, isOther, strength) => {
        const factor = (strength * 5e-4) / 256;
        let map: PixelMap = (column, row) => [column + factor * bend(column, row), row];
        if (isFlipped) map = flipped(map);
        if (isOther) map = onOtherAxis(map);
        // The largest distance of a point of a square from its interpolated position.
        const errorOf = (step: number) => {
          let worst = 0;
          for (const [column, row] of [
            [0.5, 0],
            [0, 0.5],
            [0.5, 0.5],
            [1, 0.5],
            [0.5, 1],
          ] as const)
            for (const axis of [0, 1] as const) {
              const at = (c: number, r: number) => map(c * step, r * step)[axis];
              const upper = at(0, 0) * (1 - column) + at(1, 0) * column;
              const lower = at(0, 1) * (1 - column) + at(1, 1) * column;
              worst = Math.max(worst, Math.abs(upper * (1 - row) + lower * row - at(column, row)));
            }
          return worst;
        };
        const error = errorOf(32);
        fc.pre(Math.abs(error - 5e-4) > 1e-6);
        const { grid } = gridBy(32, 32, map);
        assert.equal(grid.step === 32, error < 5e-4, `step ${grid.step} for an error of ${error}`);
        assert.ok(worstOf(32, 32, map) <= 5e-4 * 1.001);
      },
    ),
    { seed: 42, numRuns: 120 },
  );
});

test('no pixel is misplaced if a projection jumps or has a kink anywhere', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 329, noNaN: true }),
      fc.constantFrom('jump', 'kink', 'slope'),
      fc.boolean(),
      fc.boolean(),
      (place, kind, isFlipped, isOther) => {
        const far = (column: number) => Math.max(0, column - place);
        let map: PixelMap = (column, row) => [
          column +
            (kind === 'jump'
              ? 1000 * Math.sign(far(column))
              : kind === 'kink'
                ? -0.5 * far(column)
                : 0.02 * far(column)),
          row,
        ];
        if (isOther) map = onOtherAxis(map);
        // Squares between those that are tested may be four times as inexact.
        const worst = isFlipped ? worstOf(5, 330, flipped(map)) : worstOf(330, 5, map);
        assert.ok(worst <= 4 * 5e-4, `${worst} pixels`);
      },
    ),
    { seed: 42, numRuns: 60 },
  );
});

test("a projection's behaviour beyond the destination refines no square in it", () => {
  // A kink at a node of step 4, and one beyond the last pixel, in the square that it begins in.
  const map: PixelMap = (column, row) => [
    column + Math.max(0, column - 4) + 5 * Math.max(0, column - 335.5),
    row,
  ];
  assert.equal(gridBy(328, 20, map).grid.step, 4);
  assert.equal(gridBy(20, 328, flipped(map)).grid.step, 4);
  assert.ok(worstOf(328, 20, map) < 1e-9);
});

test('each point of a square is projected once, even if the square is divided completely', () => {
  const next = random(5);
  const noise = new Map<string, number>();
  const at = (column: number, row: number) => {
    const key = `${column} ${row}`;
    if (!noise.has(key)) noise.set(key, next());
    return noise.get(key)!;
  };
  const map: PixelMap = (column, row) => [column + at(column, row), row];
  const { grid, asked } = gridBy(64, 64, map);
  assert.equal(grid.step, 1);
  // Four squares of 33 x 33 points; before these the nodes, and one square of each step.
  assert.ok(asked.length <= 4 * 33 ** 2 + 9 + 3 * 9, `${asked.length}`);
  assert.ok(worstOf(64, 64, map) < 1e-9);
});

/** Which pixels of a destination have a counterpart in a source of 200 x 200 pixels. */
function placed(width: number, height: number, map: PixelMap) {
  const { grid, asked } = gridBy(width, height, map);
  const valid = new Uint8Array(width * height).fill(1);
  const source = {
    pixels: new Uint8Array(200 * 200).fill(1),
    window: { column: 0, row: 0, width: 200, height: 200 },
    rasterWidth: 200,
    rasterHeight: 200,
    nodata: undefined,
  };
  for (const resampling of ['nearest', 'bilinear'] as const)
    warp(resampling, source, grid, new Uint8Array(valid.length), valid);
  return { valid, grid, asked };
}

test('a part of a map that is smaller than a square is detected, and only its edge is divided', () => {
  for (const [left, top] of [
    [8, 8],
    [24, 40],
    [50, 11],
  ] as const) {
    const map: PixelMap = (column, row) =>
      Math.hypot(column - left, row - top) < 4.3 ? [column + 10, row + 20] : [NaN, NaN];
    const { valid, grid, asked } = placed(128, 96, map);
    assert.equal(grid.step, 1);
    for (const [i, value] of valid.entries())
      assert.equal(value === 1, !Number.isNaN(map(i % 128, Math.floor(i / 128))[0]), `pixel ${i}`);
    assert.ok(asked.length < 12 * 50, `${asked.length} points`);
    const isOff = (node: number) => grid.x[node] === OFF_MAP && grid.y[node] === OFF_MAP;
    for (let row = 0; row < 96; row++)
      for (let column = 0; column < 128; column++)
        assert.equal(isOff(row * grid.columns + column), valid[row * 128 + column] === 0);
  }
});

test('half of a map ends at any column or row', () => {
  for (const end of [0.5, 15.5, 20.3, 31.5, 40])
    for (const isFlipped of [false, true]) {
      const half: PixelMap = (column, row) => (column <= end ? [column + 1, row + 1] : [NaN, NaN]);
      const map = isFlipped ? flipped(half) : half;
      const { valid, asked } = placed(70, 70, map);
      for (const [i, value] of valid.entries())
        assert.equal(value === 1, !Number.isNaN(map(i % 70, Math.floor(i / 70))[0]), `pixel ${i}, ${end}`);
      assert.ok(asked.length < 3000, `${asked.length} points`);
    }
});

test('a destination beyond a map has no pixel with data, and few points of it are projected', () => {
  const { valid, grid, asked } = placed(100, 70, () => [NaN, NaN]);
  assert.ok(valid.every((value) => value === 0));
  assert.equal(grid.step, 32);
  assert.ok(grid.x.every(Number.isNaN) && grid.y.every(Number.isNaN));
  assert.ok(sourceExtent(grid).left > sourceExtent(grid).right);
  assert.ok(asked.length < 12 * 26 + 20 + 27, `${asked.length} points`);
});

test('squares beyond the image are not divided, those in it and at its edges are', () => {
  const far = 5000;
  for (const [width, start, places] of [
    // The image begins at this column of the destination. None of the kinks beyond it is in one of the nine tested squares.
    [60, 100, [40, 60, 260, 300]],
    [30, 200, [50, 120, 300]],
  ] as const) {
    const image = { width, height: far };
    const inImage = (x: number, y: number) => x >= 0 && x < width && y >= 0 && y < far;
    const kink =
      (place: number): PixelMap =>
      (column, row) => [
        column - start + 0.4 * Math.abs(column - place) - 0.4 * Math.abs(start - place),
        row + 100,
      ];
    const flip = { width: far, height: width };
    for (const place of places) {
      assert.equal(gridBy(330, 40, kink(place + 0.7), image).grid.step, 32, `${place}`);
      assert.equal(gridBy(40, 330, flipped(kink(place + 0.7)), flip).grid.step, 32, `${place}`);
      assert.ok(gridBy(330, 40, kink(place + 0.7)).grid.step < 32);
    }
    for (let place = start - 10; place < start + 2 * width; place += 7.3) {
      assert.ok(worstOf(330, 5, kink(place), inImage, image) <= 2e-3, `${place}`);
      const flippedIn = (x: number, y: number) => inImage(y, x);
      assert.ok(worstOf(5, 330, flipped(kink(place)), flippedIn, flip) <= 2e-3, `${place}`);
    }
  }
});
