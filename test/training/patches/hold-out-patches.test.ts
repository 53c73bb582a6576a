import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { computePixelGrids, type GridName, gridByName } from '../../../src/grid/index.js';
import type { Window } from '../../../src/raster/index.js';
import { spatialSplits, validationDate } from '../../../src/training/hold-out.js';

interface Rectangle {
  west: number;
  south: number;
  east: number;
  north: number;
}

/** A window of a cell's pixels in the coordinates of the grid. */
function rectangleOf(cell: Rectangle, { width, height }: { width: number; height: number }, window: Window) {
  const [x, y] = [(cell.east - cell.west) / width, (cell.north - cell.south) / height];
  return {
    west: cell.west + window.column * x,
    east: cell.west + (window.column + window.width) * x,
    north: cell.north - window.row * y,
    south: cell.north - (window.row + window.height) * y,
  };
}

/** Pixels between two rectangles, along the axis in which they are further apart; 0 if they touch or overlap. */
function pixelsBetween(a: Rectangle, b: Rectangle, pixel: { x: number; y: number }): number {
  const across = Math.max(a.west - b.east, b.west - a.east) / pixel.x;
  const down = Math.max(a.south - b.north, b.south - a.north) / pixel.y;
  return Math.max(0, across, down);
}

const GRIDS: Record<GridName, { precisions: number[]; area: Rectangle }> = {
  geohash: { precisions: [2, 3, 4, 5, 6], area: { west: -165, south: -75, east: 165, north: 75 } },
  quadtile: { precisions: [8, 11, 13, 15], area: { west: -1.9e7, south: -1.5e7, east: 1.9e7, north: 1.5e7 } },
};

describe('the held-out ground', () => {
  for (const [name, { precisions, area }] of Object.entries(GRIDS))
    it(`of a ${name} cell is a gap away from all training ground, for all sides that neighbouring cells hold out`, () => {
      const grid = gridByName(name as GridName);
      fc.assert(
        fc.property(
          fc.double({ min: area.west, max: area.east, noNaN: true }),
          fc.double({ min: area.south, max: area.north, noNaN: true }),
          fc.constantFrom(...precisions),
          fc.constantFrom(
            [16, 16] as const,
            [64, 64] as const,
            [32, 25] as const,
            [16, 32] as const,
            [64, 32] as const,
          ),
          fc.integer({ min: 200, max: 700 }),
          fc.array(fc.double({ min: 0, max: 0.5, noNaN: true }), { minLength: 4, maxLength: 4 }),
          (x, y, precision, [patchSize, gap], pixels, [left, top, right, bottom]) => {
            const { width, height } = grid.cellSize(precision);
            const own = grid.encode(x, y, precision);
            // Pixel size in metres that gives a cell about this number of pixels.
            const metres = (name === 'geohash' ? height * 111_000 : height) / pixels;
            const coveredOf = (size: { width: number; height: number }) => {
              const [column, row] = [Math.floor(left! * size.width), Math.floor(top! * size.height)];
              return {
                ...{ column, row, width: Math.ceil((1 - right!) * size.width) - column },
                height: Math.ceil((1 - bottom!) * size.height) - row,
              };
            };
            const groundsOf = (geocode: string) => {
              const [size] = computePixelGrids(grid, geocode, [{ x: metres, y: metres }]);
              const rectangle = (window: Window) => rectangleOf(grid.bounds(geocode), size!, window);
              return spatialSplits(size!, coveredOf(size!), patchSize, gap).map(
                ({ side, train, selection, validation }) => ({
                  side,
                  trained: [rectangle(train), rectangle(selection)],
                  validation: rectangle(validation),
                  pixel: { x: width / size!.width, y: height / size!.height },
                }),
              );
            };
            const { west, south } = grid.bounds(own);
            const middle = { x: west + width / 2, y: south + height / 2 };
            const around = [-1, 0, 1].flatMap((column) =>
              [-1, 0, 1].map((row) =>
                grid.encode(middle.x + column * width, middle.y + row * height, precision),
              ),
            );
            for (const held of groundsOf(own))
              for (const geocode of around)
                for (const { side, trained } of groundsOf(geocode)) {
                  if (geocode === own && side !== held.side) continue;
                  for (const one of trained) {
                    const between = pixelsBetween(held.validation, one, held.pixel);
                    assert.ok(between > gap - 1e-4, `${own} and ${geocode}: ${between} pixels`);
                  }
                }
          },
        ),
        { seed: 7, numRuns: 200 },
      );
    });

  const cell = (width: number, height: number) =>
    [
      { width, height },
      { column: 0, row: 0, width, height },
    ] as const;

  it('is about a quarter of the cell', () => {
    const grounds = spatialSplits(...cell(330, 490), 16, 16);
    assert.deepEqual(
      grounds.map(({ side }) => side),
      ['eastern', 'western', 'southern', 'northern'],
    );
    const [eastern, western, southern, northern] = grounds;
    assert.deepEqual(eastern, {
      side: 'eastern',
      validation: { column: 234, row: 16, width: 80, height: 458 },
      train: { column: 0, row: 0, width: 218, height: 410 },
      selection: { column: 0, row: 410, width: 218, height: 80 },
    });
    assert.deepEqual(western!.validation, { column: 16, row: 16, width: 80, height: 458 });
    assert.deepEqual(western!.train, { column: 112, row: 0, width: 218, height: 410 });
    assert.deepEqual(southern!.validation, { column: 16, row: 346, width: 298, height: 128 });
    assert.deepEqual(northern, {
      side: 'northern',
      validation: { column: 16, row: 16, width: 298, height: 128 },
      train: { column: 0, row: 160, width: 282, height: 330 },
      selection: { column: 282, row: 160, width: 48, height: 330 },
    });
    assert.deepEqual(spatialSplits(...cell(63, 47), 16, 16), []);
    assert.deepEqual(
      spatialSplits(...cell(64, 48), 16, 16).map(({ side }) => side),
      ['eastern', 'western'],
    );
  });

  it('is at the edge of the covered part, if that is not near the edge of the cell', () => {
    const covered = { column: 0, row: 0, width: 128, height: 96 };
    const southern = spatialSplits({ width: 140, height: 162 }, covered, 16, 16).find(
      ({ side }) => side === 'southern',
    );
    assert.deepEqual(southern, {
      side: 'southern',
      validation: { column: 16, row: 64, width: 108, height: 32 },
      train: { column: 0, row: 0, width: 112, height: 48 },
      selection: { column: 112, row: 0, width: 16, height: 48 },
    });
  });
});

describe('the first held-out date', () => {
  const days = (...numbers: number[]) => numbers.map((day) => day * 86_400_000);
  const dayOf = (...cells: number[][]) => {
    const time = validationDate(cells);
    return time === undefined ? undefined : time / 86_400_000;
  };

  it('has about a quarter of the tiles at or after it', () => {
    assert.equal(dayOf(days(1, 2)), 2);
    assert.equal(dayOf(days(1, 2, 3, 4)), 4);
    assert.equal(dayOf(days(4, 2, 3, 1, 5)), 5);
    assert.equal(dayOf(days(1, 2, 3, 4, 5, 6)), 5);
    assert.equal(dayOf(days(1, 2, 3, 4, 5, 6, 7, 8)), 7);
  });

  it('is the same for all cells', () => {
    assert.equal(dayOf(days(1, 3, 5, 7), days(2, 4, 6, 8)), 7);
    // Many tiles of one late date outweigh one tile of a later date.
    assert.equal(dayOf(days(1, 2, 3), days(1, 2, 3), days(1, 2, 3, 9)), 3);
  });

  it('does not exist if no cell has several dates', () => {
    assert.equal(dayOf(), undefined);
    assert.equal(dayOf(days(1), days(2), days(3, 3)), undefined);
    assert.equal(dayOf(days(1), days(5, 6)), 6);
  });
});
