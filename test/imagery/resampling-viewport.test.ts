/** Assignment of the pixels of a map tile to cells, including the antimeridian and the end of the map before the poles. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { grids } from '../../src/grid/index.js';
import { mapPixelCentres, viewportOfCell } from '../../src/imagery/viewport.js';

const SIZE = 16;

test('each pixel of a map tile lies in one cell, at the position that the cell gives', () => {
  const tile = fc.integer({ min: 0, max: 24 }).chain((z) => {
    const last = 2 ** z - 1;
    const index = fc.oneof(fc.constantFrom(0, last), fc.integer({ min: 0, max: last }));
    return fc.record({ z: fc.constant(z), x: index, y: index });
  });
  fc.assert(
    fc.property(tile, fc.constantFrom(...grids), fc.nat(3), (map, grid, finer) => {
      // Cells about as large as the map tile, and some finer.
      const bits = grid.name === 'quadtile' ? map.z : (2 * map.z) / 5;
      const precision = Math.min(
        grid.maxPrecision,
        Math.max(1, Math.floor(bits) + Math.min(finer, grid.name === 'geohash' ? 1 : 3)),
      );
      const pixels = mapPixelCentres(map, SIZE, grid);
      const bounds = {
        west: pixels.xs[0],
        east: pixels.xs[SIZE - 1],
        south: pixels.ys[SIZE - 1],
        north: pixels.ys[0],
      };
      const owner = new Map<number, string>();
      for (const geocode of grid.cover(bounds, precision)) {
        const view = viewportOfCell(pixels, grid.bounds(geocode));
        if (!view) continue;
        for (const [j, down] of view.rows.entries()) {
          for (const [i, across] of view.columns.entries()) {
            const pixel = (view.top + j) * SIZE + view.left + i;
            assert.ok(!owner.has(pixel), 'a pixel in two cells');
            owner.set(pixel, geocode);
            assert.ok(across >= 0 && across < 1 && down > 0 && down <= 1);
          }
        }
      }
      for (let pixel = 0; pixel < SIZE * SIZE; pixel++) {
        const [x, y] = [pixels.xs[pixel % SIZE], pixels.ys[Math.floor(pixel / SIZE)]];
        assert.equal(owner.get(pixel), grid.encode(x, y, precision));
      }
    }),
    { seed: 42, numRuns: 300 },
  );
});
