import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { allocatePixels, areaMean, type PixelArray, pixelAreas } from '../../src/raster/index.js';

const side = fc.integer({ min: 1, max: 12 });
const size = fc.record({ width: side, height: side });

/** The slow way: each fine pixel is divided into as many parts as the grid has pixels, so each part lies within one pixel of the grid. */
function meanOfParts(
  fine: { width: number; height: number; pixels: PixelArray },
  grid: { width: number; height: number },
  column: number,
  row: number,
  nodata: number | undefined,
): number {
  let sum = 0;
  let count = 0;
  for (let y = row * fine.height; y < (row + 1) * fine.height; y++)
    for (let x = column * fine.width; x < (column + 1) * fine.width; x++) {
      const value = fine.pixels[Math.floor(y / grid.height) * fine.width + Math.floor(x / grid.width)];
      if (value === nodata || Number.isNaN(value)) continue;
      sum += value;
      count++;
    }
  return sum / count;
}

test('means over a window of a grid are weighted by area, for any sizes', () => {
  fc.assert(
    fc.property(
      size,
      size,
      fc.constantFrom('float32' as const, 'float64' as const, 'uint8' as const, 'int16' as const),
      fc.constantFrom(undefined, 0, 7),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 }),
      fc.infiniteStream(fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 0, max: 9 }) }, fc.constant(NaN))),
      (fine, grid, dataType, nodata, [a, b, c, d], values) => {
        const pixels = allocatePixels(dataType, fine.width * fine.height).map(() => values.next().value!);
        const column = Math.floor(a * grid.width * 0.999);
        const row = Math.floor(b * grid.height * 0.999);
        const width = Math.ceil(c * (grid.width - column)) || 1;
        const height = Math.ceil(d * (grid.height - row)) || 1;
        const areas = pixelAreas(fine, grid, { column, row, width, height });
        const { covering } = areas;
        const read = allocatePixels(dataType, covering.width * covering.height).map((_, at) => {
          const x = covering.column + (at % covering.width);
          return pixels[(covering.row + Math.floor(at / covering.width)) * fine.width + x];
        });
        const means = areaMean(read, areas, nodata);
        assert.equal(means.length, width * height);
        means.forEach((mean, at) => {
          const x = column + (at % width);
          const y = row + Math.floor(at / width);
          const expected = meanOfParts({ ...fine, pixels }, grid, x, y, nodata);
          assert.ok(Object.is(mean, expected) || Math.abs(mean - expected) < 1e-5, `${mean} ${expected}`);
        });
      },
    ),
    { seed: 42, numRuns: 500 },
  );
});
