/** Offsets, scales and masks of Items of known archives. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { Mask } from '../../src/raster/index.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

interface Archive {
  collection: string;
  properties?: object;
  asset?: object;
  key?: string;
}

/** Scale and offset of the only band of an Item. */
async function calibrationOf(folder: string, { collection, properties, asset, key = 'red' }: Archive) {
  const product = join(folder, `${Math.random()}`);
  await mkdir(product);
  await writeRaster(join(product, 'a.tif'));
  const item = {
    ...{ type: 'Feature', stac_version: '1.0.0', id: 'x', collection },
    properties: { datetime: '2024-06-01T10:00:00Z', ...properties },
    assets: { [key]: { href: './a.tif', type: 'image/tiff', roles: ['data', 'reflectance'], ...asset } },
  };
  await writeFile(join(product, 'item.json'), JSON.stringify(item));
  const [scene] = await describeScenes(product, {});
  const { scale, offset } = scene!.groups[0]!.bands[0]!;
  return [scale, offset, scene!.groups[0]!.nodata];
}

const SAID = { 'raster:bands': [{ scale: 0.0001, offset: -0.1, nodata: 0 }] };

test('Sentinel-2 has the offset of its baseline, unless it is already subtracted', async (t) => {
  const folder = await tempFolder(t);
  const of = (properties: object, asset: object = {}, collection = 'sentinel-2-l2a') =>
    calibrationOf(folder, { collection, properties, asset });
  const earthSearch = (applied: boolean, baseline: string) =>
    of({ 'earthsearch:boa_offset_applied': applied, 's2:processing_baseline': baseline }, SAID);
  assert.deepEqual(
    await earthSearch(true, '05.09'),
    [1e-4, 0, 0],
    'Earth Search names an offset all the same',
  );
  assert.deepEqual(await earthSearch(false, '05.09'), [1e-4, -0.1, 0]);
  assert.deepEqual(await earthSearch(false, '02.12'), [1e-4, 0, 0]);
  // Planetary Computer names neither scale nor offset.
  assert.deepEqual(await of({ 's2:processing_baseline': '04.00' }), [1e-4, -0.1, 0]);
  assert.deepEqual(await of({ 's2:processing_baseline': '03.01' }), [1e-4, 0, 0]);
  // Other archives describe the offset in the Item.
  assert.deepEqual(await of({}, SAID), [1e-4, -0.1, 0]);
  assert.deepEqual(await of({}, SAID, 'sentinel-2-c1-l2a'), [1e-4, -0.1, 0]);
});

test('processing properties of Sentinel-2 may have any JSON type, and are refused if they cannot be read', async (t) => {
  const folder = await tempFolder(t);
  const offsetOf = async (properties: object) =>
    (await calibrationOf(folder, { collection: 'sentinel-2-l2a', properties }))[1];
  for (const baseline of ['05.10', 5.1, '5.1', 5, '5', 'N0510', '0510', ' 05.10 ', '5.10', 4, '04.00', 4.0])
    assert.equal(await offsetOf({ 's2:processing_baseline': baseline }), -0.1, JSON.stringify(baseline));
  for (const baseline of ['03.01', 3.01, 2.14, '2.14', 3, 'N0301', '0301', null])
    assert.equal(await offsetOf({ 's2:processing_baseline': baseline }), 0, JSON.stringify(baseline));
  for (const applied of [true, 'true', 'True', 1, '1'])
    assert.equal(
      await offsetOf({ 's2:processing_baseline': 5.1, 'earthsearch:boa_offset_applied': applied }),
      0,
    );
  for (const applied of [false, 'false', 'FALSE', 0, null])
    assert.equal(
      await offsetOf({ 's2:processing_baseline': 5.1, 'earthsearch:boa_offset_applied': applied }),
      -0.1,
    );
  for (const properties of [
    ...['', 'latest', '05.10.1', 510, 4000, '5090', -1, true, [5.1], { value: 5.1 }].map((value) => ({
      's2:processing_baseline': value,
    })),
    ...['', 'yes', 2, [true], {}].map((value) => ({ 'earthsearch:boa_offset_applied': value })),
  ])
    await assert.rejects(
      offsetOf(properties),
      { code: 'TW_INGEST_BAD_SIDECAR', message: /properties\.\w+:\w+ is/ },
      JSON.stringify(properties),
    );
});

test('Landsat Collection 2 and HLS have the factors of their products', async (t) => {
  const folder = await tempFolder(t);
  assert.deepEqual(await calibrationOf(folder, { collection: 'landsat-c2-l2' }), [2.75e-5, -0.2, 0]);
  assert.deepEqual(await calibrationOf(folder, { collection: 'landsat-c2l2-sr' }), [2.75e-5, -0.2, 0]);
  assert.deepEqual(
    await calibrationOf(folder, { collection: 'landsat-c2-l2', key: 'lwir11' }),
    [0.00341802, 149, 0],
  );
  assert.deepEqual(await calibrationOf(folder, { collection: 'hls2-s30', key: 'B04' }), [1e-4, 0, null]);
  assert.deepEqual(await calibrationOf(folder, { collection: 'my-own', key: 'red' }), [1, 0, null]);
});

test('SCL, QA_PIXEL and Fmask are masks', async (t) => {
  const folder = await tempFolder(t);
  const layers = {
    scl: {
      collection: 'sentinel-2-l2a',
      dataType: 'uint8',
      codes: { 4: 'clear', 9: 'cloud', 3: 'shadow', 11: 'snow', 1: 'notAssessed' },
    },
    qa_pixel: {
      collection: 'landsat-c2-l2',
      dataType: 'uint16',
      codes: { 21824: 'clear', 22280: 'cloud', 23888: 'shadow', 1: 'notAssessed' },
    },
    Fmask: {
      collection: 'hls2-l30',
      dataType: 'uint8',
      codes: { 64: 'clear', 2: 'cloud', 8: 'shadow', 16: 'snow', 255: 'notAssessed' },
    },
  } as const;
  for (const [key, { collection, dataType, codes }] of Object.entries(layers)) {
    const product = join(folder, key);
    await mkdir(product);
    await writeRaster(join(product, 'red.tif'));
    const bands = [dataType === 'uint8' ? new Uint8Array(64 * 64) : new Uint16Array(64 * 64)];
    await writeRaster(join(product, 'mask.tif'), { dataType, bands });
    const item = {
      ...{ type: 'Feature', stac_version: '1.0.0', id: 'x', collection },
      properties: { datetime: '2024-06-01T10:00:00Z' },
      assets: {
        red: { href: './red.tif', type: 'image/tiff', roles: ['data'] },
        [key]: { href: './mask.tif', type: 'image/tiff', roles: ['data', 'cloud'] },
      },
    };
    await writeFile(join(product, 'item.json'), JSON.stringify(item));
    const [scene] = await describeScenes(product, {});
    const [quality] = scene!.quality;
    assert.ok(quality, key);
    const found = Object.fromEntries(
      Object.keys(codes).map((value) => [value, quality.codes[Number(value)]]),
    );
    assert.deepEqual(
      found,
      Object.fromEntries(Object.entries(codes).map(([value, name]) => [value, Mask[name]])),
      key,
    );
    assert.deepEqual(
      scene!.groups.map(({ role }) => role),
      ['data', 'qa'],
    );
  }
});
