/** Scenes across the antimeridian and at a pole, cut into cells as exact gdalwarp does. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Grid, geohash, quadtile } from '../../src/grid/index.js';
import { coverScene } from '../../src/ingest/cells.js';
import { gridToSourceTransform } from '../../src/ingest/georeferencing.js';
import { buildControlGrid, openRaster, readRaster, warp } from '../../src/raster/index.js';
import { needsGdal } from '../raster/gdal.js';
import { ingest, testNode } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { around, gdalCell, SIDE, type Square, writeSquare } from './gdal-squares.js';
import { type Placed, sceneOf } from './geometry-rasters.js';

const antimeridian: [name: string, square: Square, grid: Grid, precision: number][] = [
  ['UTM zone 60', around(32660, 180, 20, 100), geohash, 4],
  ['UTM zone 1 south', around(32701, -180, -40, 100), geohash, 4],
  ['UTM zone 60 in quadtile', around(32660, 180, 20, 100), quadtile, 11],
  ['178.5 to 181.5 degrees', { epsg: 4326, x: 178.5, y: 10, pixel: 0.01 }, geohash, 3],
  ['-181.5 to -178.5 degrees', { epsg: 4326, x: -181.5, y: 10, pixel: 0.01 }, quadtile, 8],
];
const poles: typeof antimeridian = [
  ['polar stereographic south', around(3031, 0, -90, 2000), geohash, 2],
  ['polar stereographic north', around(3413, 30, 89.5, 1000), geohash, 2],
  ['UPS', around(32661, 10, 89, 1000), geohash, 2],
];

for (const [name, square, grid, precision] of [...antimeridian, ...poles]) {
  test(`cells of a scene in ${name} are those of exact gdalwarp`, needsGdal, async (t) => {
    const folder = await tempFolder(t);
    const path = await writeSquare(join(folder, 'scene.tif'), square);
    const header = await openRaster(path);
    const { bands } = await readRaster(path);
    const raster: Placed = { name, ...header };
    const cells = coverScene(sceneOf(raster), grid, precision);
    const size = 160;
    let held = 0;
    // Both ends of the list, and some between: cells on both sides of the antimeridian.
    const step = Math.max(1, cells.length / 8);
    for (let i = 0; i < cells.length; i += step) {
      const geocode = cells[Math.floor(i)]!;
      const bounds = grid.bounds(geocode);
      const project = gridToSourceTransform(grid.epsg, header);
      const control = buildControlGrid({ bounds, width: size, height: size }, project, header.transform);
      const out = new Uint16Array(size * size);
      const valid = new Uint8Array(out.length).fill(1);
      const source = {
        pixels: bands[0]!,
        window: { column: 0, row: 0, width: SIDE, height: SIDE },
        rasterWidth: SIDE,
        rasterHeight: SIDE,
        nodata: 0,
      };
      held += warp('nearest', source, control, out, valid);
      const wanted = await gdalCell(
        path,
        square,
        grid,
        bounds,
        { width: size, height: size },
        join(folder, 'cell.tif'),
      );
      const same = out.filter((value, k) => value === wanted[k]).length;
      assert.ok(same >= 0.999 * out.length, `${geocode}: ${same} of ${out.length}`);
    }
    assert.ok(held > 20_000, String(held));
  });
}

test('a scene at the pole is ingested completely, and refused for quadtile', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const href = await writeSquare(join(folder, 'scene.tif'), around(3413, 0, 90, 1000));
  const at = { datetime: '2024-06-01T10:00:00Z' };
  const whole = await ingest(node, { href, ...at, collection: 'g', precision: 2 });
  assert.deepEqual([whole.failed, whole.tiles], [[], 32]);
  const lost = await ingest(node, { href, ...at, collection: 'q', grid: 'quadtile', precision: 5 });
  assert.deepEqual(
    lost.failed.map(({ code }) => code),
    ['TW_INGEST_OUTSIDE_GRID'],
  );
});
