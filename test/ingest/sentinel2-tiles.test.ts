/** Tiles of Sentinel-2 products: physical values, cloud cover, and both codecs. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import proj4 from 'proj4';
import { SAFE_ORIGIN, type SafeProductFiles, writeSafe } from '../../data-samples/index.js';
import { geohash } from '../../src/grid/index.js';
import { readImage, readRaster } from '../../src/raster/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { CASES, writeConstant } from './sentinel2-products.js';

for (const { level, baseline, mask } of [CASES[0], CASES[1], CASES[3]]) {
  test(`ingest of ${level} ${baseline}: physical values and cloud cover`, async (t) => {
    const folder = await tempFolder(t);
    const size = { width: 600, height: 600 };
    const product = await writeSafe(folder, { level, baseline, size, cloudShare: 0.3 });
    await writeConstant(product.bandPaths.B04, 10, 2345, { side: 6000 });
    const node = await testNode(t, join(folder, 'data'));
    const results = await ingest(node, { href: product.path });
    assert.deepEqual(results.failed, []);
    assert.deepEqual(
      results.scenes.map(({ id }) => id),
      [product.sceneId],
    );
    const tiles = await tilesOf(node);
    assert.ok(tiles.length >= 2);

    let assessed = 0;
    for (const tile of tiles) {
      const { bands } = await readImage(node.storage.tileImage(tile, '10m'));
      const record = tile.groups.find(({ name }) => name === '10m');
      const b04 = record?.bands.findIndex(({ name }) => name === 'B04') ?? -1;
      const { scale, offset } = record?.bands[b04] ?? { scale: NaN, offset: NaN };
      const stored = new Set(bands[b04]);
      stored.delete(0);
      assert.deepEqual([...stored], [2345], 'the numbers are kept as delivered');
      assert.ok(Math.abs(2345 * scale + offset - (2345 + product.addOffset) / 10_000) < 1e-12);

      if (mask === undefined) continue;
      const expected = await bruteForceCloud(product, tile, size.width);
      if (expected === null) assert.equal(tile.cloudCover, null);
      else assert.ok(Math.abs((tile.cloudCover ?? NaN) - expected) < 0.05, `${tile.cloudCover} ${expected}`);
      assessed++;
    }
    assert.equal(assessed, mask === undefined ? 0 : tiles.length);
  });
}

/** Percent of cloud among assessed pixels in which some band holds data; every pixel projected by itself. */
async function bruteForceCloud(product: SafeProductFiles, tile: TileRecord, width: number) {
  const { SCL, CLASSI } = product.bandPaths;
  const masks = (await readRaster(SCL ?? CLASSI)).bands;
  const step = SCL ? 2 : 6;
  const names = Object.keys(product.bandPaths).filter((name) => /^B/.test(name));
  const data = await Promise.all(
    names.map(async (name) => {
      const { header, bands } = await readRaster(product.bandPaths[name]!);
      return { pixels: bands[0]!, across: header.width, ratio: width / header.width };
    }),
  );
  const holdsData = (i: number, j: number) =>
    data.some(
      ({ pixels, across, ratio }) => pixels[Math.floor(j / ratio) * across + Math.floor(i / ratio)] !== 0,
    );
  const bounds = geohash.bounds(tile.geocode);
  const mask = tile.groups.find(({ name }) => name === '10m') as TileRecord['groups'][number];
  const utm = proj4('EPSG:4326', '+proj=utm +zone=33 +datum=WGS84');
  let all = 0;
  let cloudy = 0;
  for (let row = 0; row < mask.height; row++) {
    const lat = bounds.north - ((bounds.north - bounds.south) * (row + 0.5)) / mask.height;
    for (let column = 0; column < mask.width; column++) {
      const lon = bounds.west + ((bounds.east - bounds.west) * (column + 0.5)) / mask.width;
      const [x, y] = utm.forward([lon, lat]);
      const i = Math.floor((x - SAFE_ORIGIN.x) / 10);
      const j = Math.floor((SAFE_ORIGIN.y - y) / 10);
      if (i < 0 || j < 0 || i >= width || j >= width || !holdsData(i, j)) continue;
      const values = masks.map((band) => band[Math.floor(j / step) * (width / step) + Math.floor(i / step)]);
      if (SCL && values[0] <= 1) continue;
      all++;
      const cloud = SCL ? values[0] >= 8 && values[0] <= 10 : values[0] > 0 || values[1] > 0;
      if (cloud) cloudy++;
    }
  }
  return all === 0 ? null : (100 * cloudy) / all;
}

const noGdal = !hasGdal && 'no GDAL on PATH';

test('JPEG 2000 and GeoTIFF under .jp2 names result in the same tiles', { skip: noGdal }, async (t) => {
  const folder = await tempFolder(t);
  const options = { level: 'L1C', size: { width: 300, height: 300 }, cloudShare: 0.3 } as const;
  const make = async (jpeg2000: boolean) => {
    const { path, bandPaths } = await writeSafe(join(folder, `${jpeg2000}`), { ...options, jpeg2000 });
    for (const band of ['B03', 'B04', 'B06', 'B07', 'B8A', 'B09', 'B10', 'B11', 'B12'])
      await rm(bandPaths[band]);
    const node = await testNode(t, join(folder, `data-${jpeg2000}`));
    assert.deepEqual((await ingest(node, { href: path })).failed, []);
    const tiles = await tilesOf(node);
    const pixels = tiles.map(async (tile) => {
      const groups = tile.groups.map(({ name }) => readImage(node.storage.tileImage(tile, name)));
      return (await Promise.all(groups)).map(({ bands }) => bands);
    });
    return { cloud: tiles.map(({ cloudCover }) => cloudCover), pixels: await Promise.all(pixels) };
  };
  assert.deepEqual(await make(true), await make(false));
});
