/** Properties of the squares of a control grid, compared with a scan of all their pixels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ControlGrid, Window } from '../../src/raster/index.js';
import { prepareSquares, SUBPIXEL_ONE } from '../../src/raster/warp/squares.js';
import { affine, gridOf, positionOf } from './grids.js';

/** The positions of all pixels of each square on one axis, from the centre of the window's first pixel on. */
function positionsOf(grid: ControlGrid, axis: 0 | 1, start: number): number[][] {
  const across = grid.columns - 1;
  const squares = Array.from({ length: across * (grid.rows - 1) }, () => [] as number[]);
  for (let row = 0; row < grid.height; row++)
    for (let column = 0; column < grid.width; column++)
      squares[Math.floor(row / grid.step) * across + Math.floor(column / grid.step)]!.push(
        positionOf(grid, column, row)[axis] - start - 0.5,
      );
  return squares;
}

test('squares are interior, outside or needed according to their pixels', () => {
  const position = fc.oneof(
    fc.double({ min: -30, max: 40, noNaN: true }),
    // Close to a centre of a pixel, on either side.
    fc.tuple(fc.integer({ min: -3, max: 9 }), fc.constantFrom(0.495, 0.505, 0.3)).map(([a, b]) => a + b),
  );
  const seen = { interior: 0, blank: 0, other: 0 };
  fc.assert(
    fc.property(
      fc.tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 15 })),
      fc.constantFrom(1, 2, 4, 8),
      fc.tuple(fc.integer({ min: 3, max: 30 }), fc.integer({ min: 3, max: 30 })),
      fc.constantFrom<[number, number, number]>(
        [0, 1, 0],
        [0, -0.5, 0],
        [0.4, 0.7, 3],
        [2.2, 1.3, 3],
        [4, 0.3, 0],
      ),
      fc.tuple(position, position),
      fc.nat(1e6),
      ([width, height], step, [sourceWidth, sourceHeight], [turn, scale, jitter], [x, y], seed) => {
        const window: Window = { column: 40, row: 7, width: sourceWidth, height: sourceHeight };
        const grid = gridOf(width, height, step, affine(turn, scale, 0, x + 40, y + 7), { jitter, seed });
        const {
          interior,
          outside,
          pending,
          sourceBounds,
          x: unitsX,
          y: unitsY,
        } = prepareSquares(grid, window);
        const all = [positionsOf(grid, 0, 40), positionsOf(grid, 1, 7)] as const;
        const reach = [
          {
            size: sourceWidth,
            first: Infinity,
            last: -Infinity,
            from: sourceBounds.left,
            end: sourceBounds.right,
          },
          {
            size: sourceHeight,
            first: Infinity,
            last: -Infinity,
            from: sourceBounds.top,
            end: sourceBounds.bottom,
          },
        ];
        for (const square of interior.keys()) {
          const axes = reach.map((axis, i) => {
            const positions = all[i]![square]!;
            return { axis, low: Math.min(...positions), high: Math.max(...positions) };
          });
          // Rounding of positions by less than a hundredth of a pixel may not lead out of the window.
          const isWithin = (margin: number) =>
            axes.every(({ axis, low, high }) => low > margin && high < axis.size - 1 - margin);
          if (interior[square]) assert.ok(isWithin(0.009));
          else assert.ok(!isWithin(0.011));
          const isApart = (margin: number) =>
            axes.some(({ axis, low, high }) => high < -margin || low > axis.size - 1 + margin);
          assert.equal(pending[square], outside[square] ? 0 : -1);
          if (outside[square]) assert.ok(isApart(0.5));
          else assert.ok(!isApart(1.001));
          seen[interior[square] ? 'interior' : outside[square] ? 'blank' : 'other']++;
          if (interior[square])
            for (const { axis, low, high } of axes) {
              axis.first = Math.min(axis.first, low);
              axis.last = Math.max(axis.last, high);
            }
        }
        for (const { size, first, last, from, end } of reach) {
          if (first > last) {
            assert.ok(end <= from);
            continue;
          }
          // Two pixels for each position, also for one that is rounded, and few others; all of them in the window.
          assert.ok(from <= Math.floor(first - 0.009) && from >= Math.floor(first - 0.011));
          assert.ok(end >= Math.floor(last + 0.009) + 2 && end <= Math.floor(last + 0.011) + 2);
          assert.ok(from >= 0 && end <= size);
        }
        for (const [nodes, units, start] of [
          [grid.x, unitsX, 40.5],
          [grid.y, unitsY, 7.5],
        ] as const)
          for (const [i, unit] of units.entries()) {
            assert.ok(Number.isInteger(unit));
            assert.ok(Math.abs(unit - (nodes[i]! - start) * SUBPIXEL_ONE) <= 0.5);
          }
      },
    ),
    { seed: 42, numRuns: 200 },
  );
  assert.ok(Math.min(...Object.values(seen)) > 50, JSON.stringify(seen));
});

test('a square across 2,000 pixels of the source is not interior, wherever it lies', () => {
  const window = { column: 0, row: 0, width: 9000, height: 9000 };
  for (const [perColumn, perRow, isInterior] of [
    [60, 0, true],
    [70, 0, false],
    [0, 60, true],
    [0, 70, false],
    [-30, 30, true],
    [40, -40, false],
  ] as const)
    for (const [left, top] of [
      [3000, 3000],
      [6500, 2500],
      [2500, 6500],
    ] as const) {
      const grid = gridOf(32, 32, 32, (column, row) => [left + perColumn * column, top + perRow * row]);
      assert.equal(prepareSquares(grid, window).interior[0], Number(isInterior));
    }
});

test('squares with undefined grid points are neither interior nor outside', () => {
  const grid = gridOf(16, 8, 8, (column, row) => [column + 4, row + 4]);
  grid.x[1] = grid.y[1] = NaN;
  const { interior, outside, pending } = prepareSquares(grid, { column: 0, row: 0, width: 30, height: 30 });
  assert.deepEqual(
    [[...interior], [...outside], [...pending]],
    [
      [0, 0],
      [0, 0],
      [-1, -1],
    ],
  );
});

test('a square is interior up to a hundredth of a pixel before the last centre on each side', () => {
  // 13 x 11 pixels in 2 x 2 squares; positions from the centre of the first pixel on.
  const squaresAt = (x: number, y: number, width: number, height: number) =>
    prepareSquares(
      gridOf(13, 11, 8, (column, row) => [x + column + 20.5, y + row + 30.5]),
      { column: 20, row: 30, width, height },
    );
  const near = 0.005;
  const far = 0.015;
  for (const [x, y, width, height, interior] of [
    [far, far, 16, 14, [1, 1, 1, 1]],
    [near, far, 16, 14, [0, 1, 0, 1]],
    [far, near, 16, 14, [0, 0, 1, 1]],
    [-near, far, 16, 14, [0, 1, 0, 1]],
    // The last pixels lie at x + 12 and y + 10.
    [1 - far, 1 - far, 14, 12, [1, 1, 1, 1]],
    [1 - near, 1 - far, 14, 12, [1, 0, 1, 0]],
    [1 - far, 1 - near, 14, 12, [1, 1, 0, 0]],
    [1 + near, 1 + near, 14, 12, [1, 0, 0, 0]],
  ] as const)
    assert.deepEqual([...squaresAt(x, y, width, height).interior], interior, `${x}, ${y}`);
  // Rounding may reach the pixel before or after.
  const needed = (x: number, y: number) => squaresAt(x, y, 40, 30).sourceBounds;
  assert.deepEqual(needed(3.5, 4.5), { left: 3, top: 4, right: 17, bottom: 16 });
  assert.deepEqual(needed(3 + near, 4 + near), { left: 2, top: 3, right: 17, bottom: 16 });
  assert.deepEqual(needed(3 - near, 4 - near), { left: 2, top: 3, right: 17, bottom: 16 });
  assert.deepEqual(needed(3 + far, 4 + far), { left: 3, top: 4, right: 17, bottom: 16 });
});
