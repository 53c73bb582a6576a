/** Map tiles compared with gdalwarp of the same stored file. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { cellBbox, gridByName } from '../../src/grid/index.js';
import { gdalName, readRaster } from '../../src/raster/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';
import { mapTileAt, nodeWithScenes, pictureOf } from './maps.js';

const skip = hasGdal ? false : 'gdalwarp is not installed';

/** Stored numbers that become 0 and 255. */
const LOW = 300;
const HIGH = 1100;

/** Cases that differ from titiler. */
const GDAL_NAMES: Record<string, string> = { nearest: 'near', cubic_spline: 'cubicspline' };

for (const grid of ['geohash', 'quadtile'] as const) {
  test(`map tiles of ${grid} cells equal those of gdalwarp`, { skip }, async (t) => {
    // Cells of more than 1,024 pixels of 2.5 m, so that there are two overviews.
    const scene = { datetime: '2024-06-01T10:00:00Z', width: 1300, height: 1200, pixel: 2.5, edge: 150 };
    const precision = grid === 'geohash' ? 5 : 13;
    const { node, folder } = await nodeWithScenes(t, [scene], { grid, precision });
    const tiles = await tilesOf(node);
    const tile = tiles.toSorted((a, b) => b.coverage - a.coverage)[0];
    const group = tile.groups.find(({ role }) => role === 'data')!;
    assert.ok(group.width > 1024, 'two overviews at least');
    const file = gdalName(node.storage.tileImage(tile, group.name));
    const info = JSON.parse(execFileSync('gdalinfo', ['-json', file]).toString());
    const overviews = (info.bands[0].overviews as { size: [number] }[]).map(({ size }) => size[0]);
    const [west, south, east, north] = cellBbox(gridByName(grid), tile.geocode);
    const point = [(west + east) / 2, (south + north) / 2] as const;
    const metres = (2 * 20037508.342789244) / 256;

    for (const [zoom, resampling, overview] of [
      [19, 'nearest', 'NONE'],
      [19, 'bilinear', 'NONE'],
      [17, 'bilinear', 'NONE'],
      [16, 'bilinear', 'NONE'],
      [15, 'bilinear', undefined],
      [19, 'cubic', 'NONE'],
      [16, 'cubic', 'NONE'],
      [19, 'cubic_spline', 'NONE'],
      [18, 'lanczos', 'NONE'],
      [16, 'lanczos', 'NONE'],
      [15, 'average', 'NONE'],
      [15, 'nearest', undefined],
      [13, 'nearest', undefined],
      [12, 'nearest', undefined],
    ] as const) {
      const map = mapTileAt(zoom, ...point);
      const look = `assets=${group.name}&bidx=3&rescale=${LOW / 1e4},${HIGH / 1e4}&resampling=${resampling}`;
      const { pixels } = await pictureOf(node, `/xyz/test/${zoom}/${map.x}/${map.y}.png?${look}`);
      // Tilewright reads the smallest overview that is not coarser than the map in both directions.
      const ground = metres / 2 ** zoom;
      const cellWidth = ((east - west) / 360) * 2 * 20037508.342789244;
      const finest = (ground / cellWidth) * group.width;
      const fitting = overviews.filter((width) => group.width / width <= finest);
      const level = overview ?? (fitting.length === 0 ? 'NONE' : String(fitting.length - 1));
      const out = join(folder, `${grid}-${zoom}-${resampling}.tif`);
      const window = ['-te', map.west, map.south, map.east, map.north, '-ts', 256, 256].map(String);
      const how = ['-et', '0', '-ovr', level, '-r', GDAL_NAMES[resampling] ?? resampling];
      execFileSync('gdalwarp', ['-q', '-t_srs', 'EPSG:3857', ...window, ...how, file, out]);
      const { bands } = await readRaster(out, [2]);
      let data = 0;
      let near = 0;
      let clear = 0;
      for (let i = 0; i < bands[0].length; i++) {
        if (bands[0][i] === 0) continue;
        data++;
        const count = Math.min(255, Math.max(0, ((bands[0][i] - LOW) / (HIGH - LOW)) * 255));
        if (pixels[4 * i + 3] === 255) clear++;
        if (Math.abs(pixels[4 * i] - count) <= 1) near++;
      }
      const name = `${grid} ${zoom} ${resampling} -ovr ${level}: ${near} of ${data}`;
      assert.ok(data > 1000, name);
      // Overviews of data are means of valid pixels, those of masks are single pixels; they differ along edges.
      assert.ok(clear >= 0.95 * data, `${name}, ${clear} opaque`);
      assert.ok(near >= 0.99 * clear, name);
    }
  });
}

/**
 * Kernels that GDAL also has, with the share of pixels that agree. At holes, GDAL redistributes the weights of
 * Lanczos and of cubic kernels wider than 4 pixels; Tilewright is bilinear there.
 */
const KERNELS = [
  ['bilinear', 16, 1],
  ['cubic', 16, 1],
  ['cubic_spline', 16, 1],
  ['lanczos', 16, 0.9],
  ['cubic', 13, 0.9],
  ['average', 13, 1],
] as const;

test('kernels weight pixels like gdalwarp', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const side = 300;
  // Pseudo-random values, with a hole of one pixel in each square of 37.
  const noise = Uint8Array.from({ length: side * side }, (_, i) => {
    const hole = (i % side) % 37 === 20 && Math.floor(i / side) % 37 === 20;
    return hole ? 0 : 1 + (((i * 2_654_435_761) >>> 0) % 255);
  });
  const point = { x: 1_680_000, y: 6_060_000, epsg: 3857, nodata: 0 };
  const shape = { width: side, height: side, dataType: 'uint8' as const, bands: [noise] };
  const href = await writeRaster(join(folder, 'noise.tif'), { ...point, ...shape });
  const about = { datetime: '2024-06-01T10:00:00Z', grid: 'quadtile', precision: 13 };
  await ingest(node, { href, collection: 'noise', ...about });
  const tile = (await tilesOf(node)).toSorted((a, b) => b.coverage - a.coverage)[0];
  const file = gdalName(node.storage.tileImage(tile, tile.groups[0].name));
  const [west, south, east, north] = cellBbox(gridByName('quadtile'), tile.geocode);
  for (const [resampling, zoom, share] of KERNELS) {
    const map = mapTileAt(zoom, (west + east) / 2, (south + north) / 2);
    const at = `/xyz/noise/${zoom}/${map.x}/${map.y}.png?bidx=1&rescale=0,255&resampling=${resampling}`;
    const { pixels } = await pictureOf(node, at);
    const out = join(folder, `${zoom}-${resampling}.tif`);
    const window = ['-te', map.west, map.south, map.east, map.north, '-ts', 256, 256].map(String);
    const how = ['-et', '0', '-ovr', 'NONE', '-r', GDAL_NAMES[resampling] ?? resampling];
    execFileSync('gdalwarp', ['-q', ...window, ...how, file, out]);
    const { bands } = await readRaster(out);
    let both = 0;
    let near = 0;
    for (let i = 0; i < bands[0].length; i++) {
      if (bands[0][i] === 0 || pixels[4 * i + 3] === 0) continue;
      both++;
      if (Math.abs(pixels[4 * i] - bands[0][i]) <= 1) near++;
    }
    const name = `${resampling} ${zoom}: ${near} of ${both}`;
    assert.ok(both > 10_000, name);
    assert.ok(near >= share * both, name);
  }
});
