/** A folder with a STAC Item and its assets is one scene. */
import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { sideFilesOf } from '../../src/ingest/index.js';
import { findInputs } from '../../src/ingest/inputs.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const FINE = { width: 128, height: 128 };
const classes = { dataType: 'uint8', bands: bytesOf(1, 64 * 64, (i) => (i % 3) + 4), pixel: 20 } as const;

const ITEM = {
  type: 'Feature',
  stac_version: '1.0.0',
  id: 'S2_T33_20240601',
  collection: 'my-cogs',
  properties: {
    datetime: null,
    start_datetime: '2024-06-01T10:00:00Z',
    end_datetime: '2024-06-01T10:01:00Z',
  },
  assets: {
    B02: {
      href: './B02.tif',
      type: 'image/tiff; application=geotiff',
      'eo:bands': [{ common_name: 'blue' }],
    },
    B03: { href: 'B03.tif', 'raster:bands': [{ scale: 0.0001, nodata: 0 }] },
    SCL: { href: 'SCL.tif', 'classification:classes': [{ value: 4 }] },
    visual: { href: 'TCI.tif', roles: ['visual'] },
    thumbnail: { href: 'preview.tif', roles: ['thumbnail'] },
    info: { href: 'info.xml', type: 'application/xml' },
    away: { href: '../B09.tif' },
    web: { href: 'https://example.com/B10.tif' },
    absent: { href: 'B11.tif' },
  },
};

async function writeProduct(folder: string, item: object = ITEM, name = 'S2.json'): Promise<string> {
  const product = join(folder, 'product');
  await mkdir(product, { recursive: true });
  await writeRaster(join(product, 'B02.tif'), { ...FINE, nodata: 0 });
  await writeRaster(join(product, 'B03.tif'), FINE);
  await writeRaster(join(product, 'SCL.tif'), classes);
  for (const other of ['TCI.tif', 'preview.tif', '../B09.tif']) await writeRaster(join(product, other), FINE);
  await writeFile(join(product, 'info.xml'), '<x/>');
  await writeFile(join(product, name), JSON.stringify(item));
  return product;
}

test('assets beside the Item are the bands of one scene', async (t) => {
  const folder = await tempFolder(t);
  const product = await writeProduct(folder);
  assert.deepEqual((await findInputs(product)).inputs, [product]);
  const [scene] = await describeScenes(product, {});
  assert.equal(scene.id, 'S2_T33_20240601');
  assert.equal(scene.collection.id, 'my-cogs');
  assert.equal(scene.end - scene.start, 60_000);
  assert.deepEqual(
    scene.groups.map(({ name, resampling, nodata, bands }) => [
      name,
      resampling,
      nodata,
      bands.map((band) => `${band.name} ${band.commonName ?? '-'} ${band.scale}`),
    ]),
    [
      ['10m', 'bilinear', 0, ['B02 blue 1', 'B03 - 0.0001']],
      ['20m-qa', 'nearest', null, ['SCL - 1']],
    ],
  );

  const node = await testNode(t, join(folder, 'data'));
  const results = await ingest(node, { href: product });
  assert.deepEqual(results.failed, []);
  assert.deepEqual(
    results.scenes.map(({ id }) => id),
    ['S2_T33_20240601'],
  );
  for (const tile of await tilesOf(node)) assert.equal(tile.groups.length, 3);
});

test('options take precedence over the Item, and those for single files are refused', async (t) => {
  const product = await writeProduct(await tempFolder(t));
  const flags = { collection: 'c', id: 'i', datetime: '2020-01-01', platform: 'p', nodata: 5, scale: 2 };
  const [scene] = await describeScenes(product, flags);
  assert.deepEqual([scene.collection.id, scene.id, scene.platform], ['c', 'i', 'p']);
  const data = scene.groups.filter(({ role }) => role === 'data');
  assert.ok(data.every(({ nodata, bands }) => nodata === 5 && bands[0].scale === 2));
  for (const more of [{ bands: { red: 1 } }, { maskBand: 1 }]) {
    const message = /^--(bands red=1|mask-band 1) cannot be used: expected the flag to be left out/;
    await assert.rejects(describeScenes(product, more), { code: 'TW_INGEST_BAD_OPTION', message });
  }
});

test('a single file of the folder is a scene', async (t) => {
  const product = await writeProduct(await tempFolder(t), ITEM, 'item.json');
  const [scene] = await describeScenes(join(product, 'B03.tif'), {});
  assert.equal(scene.id, 'S2_T33_20240601_B03');
  assert.deepEqual(
    scene.groups[0].bands.map(({ name }) => name),
    ['B03'],
  );
});

test('an invalid Item is an error, and a folder without rasters of its Item is searched', async (t) => {
  const folder = await tempFolder(t);
  const broken = await writeProduct(folder, { ...ITEM, assets: [] });
  await assert.rejects(describeScenes(broken, {}), { code: 'TW_INGEST_BAD_SIDECAR' });
  await writeProduct(folder, { ...ITEM, assets: { away: ITEM.assets.away } });
  assert.equal((await findInputs(broken)).inputs.length, 5);
  await writeProduct(folder, { ...ITEM, properties: {} });
  await assert.rejects(describeScenes(broken, {}), { code: 'TW_INGEST_NO_DATETIME' });

  const linked = join(folder, 'linked');
  await mkdir(linked);
  await writeRaster(join(linked, 'B02.tif'), FINE);
  await symlink(join(broken, 'S2.json'), join(linked, 'item.json'));
  assert.deepEqual((await findInputs(linked)).inputs, [join(linked, 'B02.tif')], 'a link is no Item');
});

test('files that an Item names and that are missing are named', async (t) => {
  const folder = await tempFolder(t);
  const asset = (href: string, more = {}) => ({ href, type: 'image/tiff; application=geotiff', ...more });
  const product = await writeProduct(folder, ITEM, 'item.json');
  const [scene] = await describeScenes(product, {});
  assert.deepEqual(scene.warnings, [
    'the STAC Item names files that are not there, so they are left out: absent (B11.tif)',
  ]);
  await writeRaster(join(product, 'other.tif'), FINE);
  const [more] = await describeScenes(product, {});
  assert.match(more.warnings.join(), /does not name these files, so they are left out: other\.tif$/);

  const json = JSON.stringify(ITEM);
  const cases: [name: string, text: string, message: RegExp][] = [
    [
      'item.json',
      JSON.stringify({ ...ITEM, assets: { data: asset('./nope.tif') } }),
      /data \(nope\.tif\).*not beside it/,
    ],
    [
      'S2.json',
      JSON.stringify({ ...ITEM, assets: { a: asset('a.tif'), b: asset('b.jp2') } }),
      /a \(a\.tif\), b \(b\.jp2\)/,
    ],
    ['item.json', json.replace('"stac_version":"1.0.0",', ''), /it has assets, but no stac_version/],
    ['S2.json', json.replace('"stac_version":"1.0.0"', '"stac_version":null'), /no stac_version/],
    ['item.json', json.slice(0, -5), /item\.json cannot be used as a STAC Item/],
  ];
  for (const [i, [name, text, message]] of cases.entries()) {
    const product = join(folder, 'cases', String(i));
    await mkdir(product, { recursive: true });
    await writeRaster(join(product, 'B02.tif'), FINE);
    await writeFile(join(product, name), text);
    assert.deepEqual((await findInputs(product)).inputs, [product]);
    // A folder above it leads to the same error.
    assert.deepEqual((await findInputs(join(folder, 'cases'))).inputs.at(-1), `${product}/`);
    await assert.rejects(describeScenes(product, {}), { code: 'TW_INGEST_BAD_SIDECAR', message }, text);
  }
});

test('an Item is a side file of its raster, but not of itself', async (t) => {
  const folder = await tempFolder(t);
  const [raster, item] = [join(folder, 'B02.tif'), join(folder, 'item.json')];
  await writeRaster(raster);
  await writeFile(item, JSON.stringify(ITEM));
  assert.deepEqual(await sideFilesOf(item), []);
  assert.deepEqual(await sideFilesOf(raster), [item]);
});
