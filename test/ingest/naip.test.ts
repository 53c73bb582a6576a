/** NAIP: the name and the content must agree; real images if they are beside the repository. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import sharp from 'sharp';
import { naip } from '../../src/ingest/formats/naip.js';
import { probeInput } from '../../src/ingest/formats/probe.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { findInputs } from '../../src/ingest/inputs.js';
import { gdalName, readImage, readRaster } from '../../src/raster/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, realData, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const skip = !existsSync(realData) && 'no real scenes beside the repository';
const NAME = 'm_3211605_ne_11_060_20200415';

/** Four bands of 8 bits, 200 x 160 pixels of about 0.6 m, in NAD83 UTM zone 11. */
const image = {
  width: 200,
  height: 160,
  dataType: 'uint8',
  bands: bytesOf(4, 200 * 160, (i, band) => (i + 40 * band) % 251),
  epsg: 26911,
  pixel: 0.5999,
  x: 557_700,
  y: 3_648_377,
} as const;

test('a NAIP image: bands, date, collection', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, `${NAME}_20200801.tif`), image);
  const [scene] = await describeScenes(path, {});
  assert.equal(scene.id, NAME, 'the date of delivery is no part of the id');
  assert.equal(scene.collection.id, 'naip');
  assert.deepEqual(
    scene.collection.providers?.map(({ name }) => name),
    ['U.S. Department of Agriculture'],
  );
  assert.equal(scene.platform, 'aircraft');
  assert.equal(new Date(scene.start).toISOString(), '2020-04-15T00:00:00.000Z');
  assert.equal(scene.start, scene.end);
  assert.deepEqual(scene.quality, []);
  assert.equal(scene.groups.length, 1);
  const [group] = scene.groups;
  assert.deepEqual(group.resolution, { x: 0.6, y: 0.6 }, 'the nominal pixel, so that years stack');
  assert.equal(group.nodata, null);
  assert.equal(group.resampling, 'bilinear');
  assert.deepEqual(
    group.bands.map(({ name, commonName, scale }) => [name, commonName, scale]),
    ['red', 'green', 'blue', 'nir'].map((name) => [name, name, 1]),
  );

  const node = await testNode(t, join(folder, 'data'));
  const results = await ingest(node, { href: path });
  assert.deepEqual(results.failed, []);
  assert.equal(results.collection, 'naip');
  for (const tile of await tilesOf(node)) assert.equal(tile.cloudCover, null, 'nothing assessed the clouds');
});

test('pixels outside of an image hold no data, although its files have no nodata value', async (t) => {
  const folder = await tempFolder(t);
  // Without 0, so that only pixels outside can be black.
  const bands = bytesOf(4, 1400 * 1000, (i, band) => 100 + ((i + 40 * band) % 50));
  const large = { ...image, width: 1400, height: 1000, bands };
  const path = await writeRaster(join(folder, `${NAME}.tif`), large);
  const node = await testNode(t, join(folder, 'data'));
  assert.deepEqual((await ingest(node, { href: path })).failed, []);
  const tile = (await tilesOf(node)).toSorted((a, b) => a.coverage - b.coverage)[0];
  assert.ok(tile.coverage < 60, `${tile.coverage}`);

  const { data, info } = await sharp((await node.server.inject(`/preview/${tile.id}.png`)).rawPayload)
    .raw()
    .toBuffer({ resolveWithObject: true });
  const opacity = data.filter((_, i) => i % info.channels === info.channels - 1);
  const opaque = opacity.filter((value) => value === 255).length;
  assert.ok(Math.abs(opaque / opacity.length - tile.coverage / 100) < 0.02, 'outside is transparent');
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] === 255) assert.ok(data[i] >= 100, 'nothing is mixed with what lies outside');

  const { geometry, bbox } = (await node.server.inject(`/collections/naip/items/${tile.id}`)).json();
  const [west, south, east, north] = bbox;
  assert.ok(west < east && south < north);
  const payload = { geometry, expression: 'red' };
  const { series } = (await node.server.inject({ method: 'POST', url: '/timeseries', payload })).json();
  assert.equal(series.length, 1);
  assert.ok(series[0].min >= 100 && series[0].mean > 120 && series[0].mean < 130, JSON.stringify(series));

  if (!hasGdal) return;
  const file = gdalName(node.storage.tileImage(tile, '0.6m'));
  const shown = JSON.parse(String(execFileSync('gdalinfo', ['-json', file])));
  for (const band of shown.bands) assert.deepEqual(band.mask.flags, ['PER_DATASET']);
});

test('neither the name alone nor the content alone makes a file NAIP', async (t) => {
  const folder = await tempFolder(t);
  const flags = { collection: 'plain', datetime: '2020-04-15' };
  const cases: [string, object][] = [
    ['photo.tif', {}],
    [`${NAME}.tif`, { epsg: 26912 }],
    [`${NAME}.tif`, { epsg: 32611 }],
    [`${NAME}.tif`, { bands: image.bands.slice(0, 3) }],
    [`${NAME}.tif`, { dataType: 'uint16', bands: image.bands.map((band) => Uint16Array.from(band)) }],
    ['m_3211605_ne_11_060_20201345.tif', {}],
  ];
  for (const [name, change] of cases) {
    const path = await writeRaster(join(folder, name), { ...image, ...change });
    const [scene] = await describeScenes(path, flags);
    assert.equal(scene.collection.id, 'plain', `${name} ${Object.keys(change)}`);
  }
});

test('a NAIP image as JPEG 2000', { skip: !hasGdal && 'GDAL is not installed' }, async (t) => {
  const folder = await tempFolder(t);
  const tiff = await writeRaster(join(folder, 'source.tif'), image);
  const path = join(folder, `${NAME}.jp2`);
  const lossless = ['-co', 'QUALITY=100', '-co', 'REVERSIBLE=YES'];
  execFileSync('gdal_translate', ['-q', '-of', 'JP2OpenJPEG', ...lossless, tiff, path]);
  const [scene] = await describeScenes(path, {});
  assert.deepEqual([scene.id, scene.collection.id, scene.groups[0].name], [NAME, 'naip', '0.6m']);
  const { bands } = await readRaster(path);
  assert.deepEqual(bands, image.bands);
});

test('real images, alone and in a folder with side files', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const names = (await readdir(join(realData, 'naip'))).filter((name) => name.endsWith('.tif'));
  const scenes = (
    await Promise.all(names.map((name) => describeScenes(join(realData, 'naip', name), {})))
  ).flat();
  assert.deepEqual(
    scenes.map(({ id, collection, groups }) => [id, collection.id, groups[0].name, groups[0].nodata]),
    [
      ['m_3211605_ne_11_060_20200415', 'naip', '0.6m', null],
      ['m_3610332_se_13_060_20200903', 'naip', '32m', 0],
      ['m_4112001_sw_10_060_20220716', 'naip', '22m', null],
    ],
  );
  const product = join(folder, 'unpacked');
  await mkdir(product);
  await copyFile(join(realData, 'naip', names[0]), join(product, names[0]));
  await writeFile(join(product, 'readme.txt'), 'text');
  await writeFile(join(product, `${names[0]}.xml`), '<metadata/>');
  assert.deepEqual((await findInputs(product)).inputs, [join(product, names[0])]);

  const node = await testNode(t, join(folder, 'data'));
  const results = await ingest(node, { href: product });
  assert.deepEqual(results.failed, []);
  const source = await readRaster(join(realData, 'naip', names[0]));
  const most = Math.max(...source.bands[3]);
  for (const tile of await tilesOf(node)) {
    const { bands } = await readImage(node.storage.tileImage(tile, '0.6m'));
    assert.equal(bands.length, 4);
    assert.ok(Math.max(...bands[3]) <= most);
  }
});

test('the header of a file is read once, for identifying and for describing it', async (t) => {
  const path = await writeRaster(join(await tempFolder(t), `${NAME}.tif`), image);
  const candidate = await probeInput(path);
  assert.equal(await naip.identify(candidate), true);
  await rm(path);
  const [scene] = await naip.describe(candidate, {});
  assert.equal(scene.collection.id, 'naip');
});
