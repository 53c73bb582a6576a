/** Sentinel-2 bands without their product: made-up and real ones. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { writeSafe } from '../../data-samples/index.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { findInputs } from '../../src/ingest/inputs.js';
import { hasGdal } from '../support/gdal.js';
import { realData, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';
import { bandsOf, describeOne, SMALL } from './sentinel2-products.js';

test('loose bands: names, documents and options supply missing metadata', async (t) => {
  const folder = await tempFolder(t);
  const product = await writeSafe(folder, { level: 'L1C', baseline: '05.09', ...SMALL });
  const images = dirname(product.bandPaths.B01);
  await rename(dirname(dirname(dirname(images))), join(folder, 'moved'));
  const loose = join(
    folder,
    'moved',
    'GRANULE',
    (await readdir(join(folder, 'moved', 'GRANULE')))[0],
    'IMG_DATA',
  );
  const scene = await describeOne(loose);
  assert.equal(scene.id, 'S2_MSIL1C_20230707T100621_T33UVP');
  assert.match(scene.warnings.join(), /without their SAFE metadata.*offset -0.1 is assumed/);
  assert.equal(scene.groups[0].bands[0].offset, -0.1);
  const told = await describeOne(loose, { offset: 0, platform: 'sentinel-2a', collection: 'sentinel-2-l2a' });
  assert.equal(told.id, 'S2A_MSIL2A_20230707T100621_T33UVP');
  assert.equal(told.groups[0].bands[0].offset, 0);

  const archive = join(folder, 'archive');
  await mkdir(archive);
  for (const name of await readdir(loose)) await rename(join(loose, name), join(archive, name.slice(-7)));
  await assert.rejects(describeScenes(archive, {}), { code: 'TW_INGEST_NO_DATETIME' });
  const tileInfo = { timestamp: '2023-07-07T10:10:38.758Z', productName: basename(product.path, '.SAFE') };
  await writeFile(join(archive, 'tileInfo.json'), JSON.stringify(tileInfo));
  const known = await describeOne(archive);
  assert.equal(known.id, product.sceneId);
  assert.equal(known.start, Date.parse(tileInfo.timestamp));
  assert.deepEqual(known.warnings, ['bands without their SAFE metadata']);

  await rm(join(archive, 'tileInfo.json'));
  const properties = {
    datetime: '2023-07-07T10:10:38Z',
    's2:product_uri': `${basename(product.path)}`,
    'earthsearch:boa_offset_applied': true,
  };
  await writeFile(join(archive, 'item.json'), JSON.stringify({ type: 'Feature', id: 'any', properties }));
  await writeFile(join(archive, 'notes.json'), 'nothing');
  const item = await describeOne(archive);
  assert.deepEqual([item.id, item.start], [product.sceneId, Date.parse(properties.datetime)]);
  assert.equal(item.groups[0].bands[0].offset, 0);
  assert.match(item.warnings.join(), /notes.json is not a JSON/);
});

test('loose bands: time as an interval, without a zone, on an invalid day; nodata as declared', async (t) => {
  const folder = await tempFolder(t);
  const pixels = { width: 60, height: 60, pixel: 10, nodata: 9 };
  const folderOf = async (name: string) => {
    await mkdir(join(folder, name));
    return join(folder, name);
  };
  const one = await folderOf('S2A_one');
  await writeRaster(join(one, 'B04.tif'), pixels);
  await assert.rejects(describeOne(one, { datetime: '2023-02-31' }), { code: 'TW_INGEST_BAD_OPTION' });
  const spans = await describeOne(one, { datetime: '2023-07-07/2023-07-08' });
  assert.deepEqual([spans.start, spans.end], [Date.parse('2023-07-07'), Date.parse('2023-07-09') - 1]);
  assert.equal(spans.id, 'S2A_one_20230707T000000Z');
  assert.equal(spans.groups[0].nodata, 9);
  assert.equal((await describeOne(one, { datetime: '2023-07-07', nodata: 5 })).groups[0].nodata, 5);
  await writeFile(join(one, 'tileInfo.json'), '{"timestamp": "2023-07-07T10:10:38.758"}');
  assert.equal((await describeOne(one)).start, Date.parse('2023-07-07T10:10:38.758Z'));

  const several = await folderOf('several');
  const stems = ['T33UVP_20230707T100621', 'T33UVP_20230712T100621'];
  for (const stem of stems) await writeRaster(join(several, `${stem}_B04.tif`), pixels);
  await cp(join(one, 'tileInfo.json'), join(several, 'tileInfo.json'));
  const scenes = await describeScenes(several, {});
  assert.deepEqual(
    scenes.map(({ start }) => new Date(start).toISOString()),
    ['2023-07-07T10:06:21.000Z', '2023-07-12T10:06:21.000Z'],
    'a document that does not say which scene it is about speaks for none',
  );
  await assert.rejects(describeScenes(several, { id: 'mine' }), {
    code: 'TW_INGEST_BAD_OPTION',
    message: /--id mine .* has 2/,
  });
});

test('real bands without metadata', {
  skip: !existsSync(realData) && 'no real scenes beside the repository',
}, async () => {
  const clear = join(realData, 'sentinel2-l1c-clear');
  assert.deepEqual((await findInputs(clear)).inputs, [clear]);
  const scene = await describeOne(clear, { datetime: '2016-01-12T16:00:00Z' });
  assert.equal(scene.collection.id, 'sentinel-2-l1c');
  assert.deepEqual(bandsOf(scene), { '20m': 'B05 B06 B07 B8A B11 B12', '60m': 'B01 B09 B10' });
  assert.equal(scene.groups[0].bands[0].offset, 0);

  if (!hasGdal) return;
  const band = await describeOne(join(realData, 'sentinel2-l2a-60m-jp2'), {
    datetime: '2022-06-18T10:36:29Z',
  });
  assert.equal(band.id, 'S2B_MSIL2A_20220618T103629_R108_T32TLS');
  assert.deepEqual(band.warnings, ['bands without their SAFE metadata']);
  assert.equal(band.groups[0].bands[0].offset, -0.1);
});
