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
  for (const baseline of ['03.01', 3.01, 2.14, '2.14', 3, 'N0301', '0301'])
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

test('an offset that no Item states comes from the name of its product, or from its date with a warning', async (t) => {
  const folder = await tempFolder(t);
  const product = (baseline: string) => `S2A_MSIL2A_20240601T103031_N${baseline}_R108_T32TLS_20240601T174123`;
  const [before, after] = [{ datetime: '2021-12-31T10:00:00Z' }, { datetime: '2022-01-25T10:00:00Z' }];
  const byDate = /is assumed by the date, because the STAC Item names no processing baseline.*--offset/;
  for (const [properties, id, offset, warning] of [
    [after, 'S2A_32TLS_20220125_0_L2A', -0.1, byDate],
    [before, 'S2A_32TLS_20211231_0_L2A', 0, byDate],
    [{ ...after, 's2:processing_baseline': null }, 'x', -0.1, byDate],
    [{ ...after, 'earthsearch:boa_offset_applied': false }, 'x', -0.1, byDate],
    [{ ...after, 'earthsearch:boa_offset_applied': true }, 'x', 0, /^$/],
    [before, product('0500'), -0.1, /^$/],
    [after, product('0214'), 0, /^$/],
    [{ ...before, 's2:product_uri': `${product('0511')}.SAFE` }, 'x', -0.1, /^$/],
    [{ ...after, 's2:processing_baseline': '03.01', 's2:product_uri': product('0511') }, 'x', 0, /^$/],
    [{ ...after, title: product('0301'), 's2:product_uri': product('0511') }, 'x', -0.1, byDate],
    [{ ...after, 'processing:version': '05.11' }, 'x', -0.1, /^$/],
  ] as const) {
    const path = join(folder, `${Math.random()}`);
    await mkdir(path);
    await writeRaster(join(path, 'a.tif'));
    const item = {
      ...{ type: 'Feature', stac_version: '1.0.0', id, collection: 'sentinel-2-l2a', properties },
      assets: { red: { href: './a.tif', type: 'image/tiff', roles: ['data', 'reflectance'] } },
    };
    await writeFile(join(path, 'item.json'), JSON.stringify(item));
    for (const input of [path, join(path, 'a.tif')]) {
      const [scene] = await describeScenes(input, {});
      const name = JSON.stringify([properties, id, input]);
      assert.equal(scene!.groups[0]!.bands[0]!.offset, offset, name);
      assert.match(scene!.warnings.join(), warning, name);
    }
  }
});

test('scales are refused if it is not clear which bands have them', async (t) => {
  const folder = await tempFolder(t);
  const scaled = { scale: 0.5 };
  const bands = [bandOf(0), bandOf(1), bandOf(2)];
  for (const [asset, message] of [
    [{ bands: [scaled] }, /lists 1 bands with scales for assets.image, and the file has 3/],
    [{ 'raster:bands': [scaled, scaled] }, /lists 2 bands .* the file has 3/],
    [{ 'eo:bands': [{}, {}, {}], 'raster:bands': [scaled] }, /assets.image has lists of 3 and 1 bands/],
    [{ bands: [scaled, scaled, scaled, scaled] }, /lists 4 bands/],
    [{ 'eo:bands': [{}, {}, {}], 'raster:bands': [{ nodata: 0 }] }],
    [{ bands: [scaled, {}, scaled] }],
    [{ 'raster:scale': 0.5, bands: [{ name: 'a' }] }, /lists 1 bands/],
    [{ 'raster:scale': 0.5 }],
  ] as [object, RegExp?][]) {
    const path = join(folder, `${Math.random()}`);
    await mkdir(path);
    await writeRaster(join(path, 'a.tif'), { bands });
    const item = {
      ...{ type: 'Feature', stac_version: '1.0.0', id: 'x', collection: 'c' },
      properties: { datetime: '2024-06-01T10:00:00Z' },
      assets: { image: { href: './a.tif', type: 'image/tiff', ...asset } },
    };
    await writeFile(join(path, 'item.json'), JSON.stringify(item));
    const describe = () => describeScenes(path, {});
    if (message)
      await assert.rejects(describe, { code: 'TW_INGEST_BAD_SIDECAR', message }, JSON.stringify(asset));
    else
      assert.equal(
        (await describe())[0]!.groups[0]!.bands[0]!.scale,
        'bands' in asset || 'raster:scale' in asset ? 0.5 : 1,
      );
  }
});

const bandOf = (value: number) => new Uint16Array(64 * 64).fill(value);

test('an Item whose files are in folders below it is named', async (t) => {
  const folder = await tempFolder(t);
  for (const [href, isBelow] of [
    ['./bands/a.tif', true],
    ['bands/a.tif', true],
    ['././/bands/a.tif', true],
    ['bands/../a.tif', false],
    ['https://example.com/bands/a.tif', false],
    ['bands/missing.tif', false],
  ] as const) {
    const path = join(folder, `${Math.random()}`);
    await mkdir(join(path, 'bands'), { recursive: true });
    await writeRaster(join(path, 'bands/a.tif'));
    const item = {
      ...{ type: 'Feature', stac_version: '1.0.0', id: 'x', collection: 'c' },
      properties: { datetime: '2024-06-01T10:00:00Z' },
      assets: { red: { href, type: 'image/tiff' } },
    };
    await writeFile(join(path, 'item.json'), JSON.stringify(item));
    await assert.rejects(
      describeScenes(path, {}),
      isBelow
        ? {
            code: 'TW_INGEST_BAD_SIDECAR',
            message: /folders below it: red \(bands\/a.tif\). Move them beside it/,
          }
        : { code: 'TW_INGEST_NOT_RECOGNISED' },
      href,
    );
  }
});

test('what a file of an Item warns of is a warning of its scene', async (t) => {
  const path = await tempFolder(t);
  await writeRaster(join(path, 'a.tif'));
  await writeFile(join(path, 'a.tif.aux.xml'), '<html/>');
  const item = {
    ...{ type: 'Feature', stac_version: '1.0.0', id: 'x', collection: 'c' },
    properties: { datetime: '2024-06-01T10:00:00Z' },
    assets: { red: { href: './a.tif', type: 'image/tiff' } },
  };
  await writeFile(join(path, 'item.json'), JSON.stringify(item));
  const [scene] = await describeScenes(path, {});
  assert.match(scene!.warnings.join(), /^a\.tif: .*aux\.xml is not used: its root element/);
});
