/** Landsat as delivered: made-up scenes always, real ones where the folder of real data lies beside the repository. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { writeLandsatLikeScene } from '../../data-samples/index.js';
import { geohash } from '../../src/geocode/index.js';
import { describeScenes, findInputs } from '../../src/ingest/formats/index.js';
import { parseMtl } from '../../src/ingest/formats/mtl.js';
import { readRaster } from '../../src/raster/index.js';
import { gdalWarp, hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

const real = fileURLToPath(new URL('../../../../shared/data/', import.meta.url));
const skip = !existsSync(real) && 'no real scenes beside the repository';

test('an MTL is read by groups, up to END, whatever follows it', () => {
  const groups = parseMtl(
    'GROUP = A\n  X = "one two"\n  GROUP = B\n    Y = 3.5\n  END_GROUP = B\n  Z = 4\nEND_GROUP = A\nEND\n\0\0X = no\n',
  );
  assert.deepEqual(groups.get('A'), { X: 'one two', Z: '4' });
  assert.deepEqual(groups.get('B'), { Y: '3.5' });
});

test('a Collection 2 scene: bands, calibration, quality', async (t) => {
  const folder = await tempFolder(t);
  const product = join(folder, 'product');
  await writeLandsatLikeScene(product);
  const [scene] = await describeScenes(product, {});
  assert.equal(scene.collection.id, 'landsat-c2-l1');
  assert.match(scene.id, /^LC08_L1TP_\d{6}_\d{8}$/);
  assert.deepEqual(
    scene.groups.map((group) => group.name),
    ['15m', '30m', '30m-qa'],
  );
  const red = scene.groups[1].bands.find((band) => band.commonName === 'red');
  assert.equal(red?.name, 'B4');
  const mtl = parseMtl(await readFile((await findMtl(product)) as string, 'latin1'));
  const sun = Math.sin(
    (Number([...mtl.values()].find((g) => g.SUN_ELEVATION)?.SUN_ELEVATION) * Math.PI) / 180,
  );
  assert.ok(Math.abs(Number(red?.scale) - 2e-5 / sun) < 1e-12);
  assert.ok(Math.abs(Number(red?.offset) + 0.1 / sun) < 1e-9);

  const codes = scene.quality[0].codes as Uint8Array;
  const expected = { 1: 255, 2: 2, 4: 2, 8: 2, 16: 3, 32: 4, 64: 1, 128: 1, 24: 2 };
  for (const [value, code] of Object.entries(expected))
    assert.equal(codes[Number(value)], code, `QA_PIXEL ${value}`);

  const node = await testNode(t, join(folder, 'data'));
  const results = await ingest(node, { href: product });
  assert.deepEqual(results.failed, []);
  for (const tile of await tilesOf(node)) {
    const [pan, colours] = tile.groups;
    assert.equal(pan.width, 2 * colours.width, 'a finer group is a whole multiple of the coarser');
    assert.equal(tile.groups.at(-1)?.name, 'mask');
  }
});

async function findMtl(folder: string): Promise<string | undefined> {
  const { readdir } = await import('node:fs/promises');
  const name = (await readdir(folder)).find((file) => file.endsWith('_MTL.txt'));
  return name && join(folder, name);
}

test('a real Landsat 8 cut-out before collections', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, folder);
  const product = join(real, 'landsat8-cloudy');
  const { scenes, failed } = await ingest(node, { href: product });
  assert.deepEqual(failed, []);
  assert.equal(scenes[0].id, 'LC08_L1T_020039_20150804');
  assert.equal(scenes[0].collection, 'landsat-pre-l1');
  assert.match(scenes[0].warnings.join(), /differ from the MTL/);
  const tiles = await tilesOf(node);
  assert.equal(tiles.length, 30);

  if (!hasGdal) return;
  // RasterPixelIsPoint shifts by half a pixel; GDAL does the same.
  const tile = tiles.find((one) => one.geocode === 'dj3ye');
  assert.ok(tile);
  for (const [group, file, band] of [
    ['30m', 'l8_B5.tif', 'B5'],
    ['15m', 'l8_B8.tif', 'B8'],
  ]) {
    const ours = await readRaster(node.storage.tilePath(tile, group));
    const { width, height } = ours.header;
    const index = tile.groups.find((g) => g.name === group)?.bands.findIndex((b) => b.name === band) ?? -1;
    const cell = { bounds: geohash.bounds('dj3ye'), width, height, resampling: 'bilinear' } as const;
    const theirs = await gdalWarp(join(product, file), cell);
    const wrong = theirs.bands[0].filter((value, i) => Math.abs(value - ours.bands[index][i]) > 1).length;
    assert.ok(wrong <= 0.001 * width * height, `${band}: ${wrong} of ${width * height} pixels differ`);
  }
});

test('real series and levels: folders of products, without MTL, surface reflectance', { skip }, async () => {
  const { inputs: series } = await findInputs(join(real, 'landsat8-ny-2018-series'));
  assert.equal(series.length, 19);
  const [one] = await describeScenes(series[0], {});
  assert.equal(one.collection.id, 'landsat-c1-l1');
  assert.match(one.warnings.join(), /no MTL/);
  const [level2] = await describeScenes(join(real, 'landsat8-c2l2-qa'), {});
  assert.equal(level2.collection.id, 'landsat-c2-l2');
  const red = level2.groups[0].bands.find((band) => band.commonName === 'red');
  assert.deepEqual([red?.name, red?.scale, red?.offset], ['B4', 0.0000275, -0.2]);
});
