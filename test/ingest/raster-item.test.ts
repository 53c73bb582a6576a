/** STAC Items beside rasters of no known product. */
import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';
import { item, twoBands } from './raster-items.js';

test('an Item beside the file describes it; options take precedence over it, and it over tags', async (t) => {
  const folder = await tempFolder(t);
  const tags = [
    { description: 'b', scale: 7 },
    { description: 'c', scale: 7 },
  ];
  const metadata = { ACQUISITION_DATETIME: '2001-01-01', PLATFORM: 'tag' };
  const path = await writeRaster(join(folder, 'a.tif'), { ...twoBands, bandTags: tags, metadata });
  for (const name of ['a.json', 'a.tif.json', 'item.json', 'other.json']) {
    const sidecar = join(folder, name);
    await writeFile(sidecar, item(name === 'a.json' ? 'https://elsewhere/b.tif' : './a.tif'));
    const [scene] = await describeScenes(path, {});
    assert.equal(scene.id, 'flight-7', name);
    assert.deepEqual(scene.collection, { id: 'drone', title: 'drone', license: 'CC-BY-4.0' });
    assert.equal(scene.platform, 'ebee');
    assert.equal(new Date(scene.start).toISOString(), '2023-05-06T07:08:09.000Z');
    const [group] = scene.groups;
    assert.equal(group.nodata, 9);
    assert.deepEqual(
      group.bands.map((band) => [band.name, band.commonName, band.scale, band.offset]),
      [
        ['R', 'red', 0.5, 1],
        ['N', 'nir', 7, 0],
      ],
    );
    const flags = { id: 'x', collection: 'y', datetime: '2024-01-01', platform: 'z', nodata: 1, scale: 2 };
    const [flagged] = await describeScenes(path, { ...flags, bands: { blue: 1 } });
    const [first] = flagged.groups[0].bands;
    assert.deepEqual(
      [
        flagged.id,
        flagged.collection.id,
        flagged.platform,
        flagged.groups[0].nodata,
        first.name,
        first.scale,
      ],
      ['x', 'y', 'z', 1, 'blue', 2],
    );
    await writeFile(sidecar, '{}');
    await assert.rejects(
      describeScenes(path, {}),
      { code: 'TW_INGEST_NO_COLLECTION' },
      'no Item, no description',
    );
    await writeFile(sidecar, item('./b.tif'));
    if (name.startsWith('a.')) await describeScenes(path, {});
    else
      await assert.rejects(describeScenes(path, {}), { code: 'TW_INGEST_NO_COLLECTION' }, 'of another file');
    await rm(sidecar);
  }
});

test('STAC 1.1 bands, special nodata, classes', async (t) => {
  const folder = await tempFolder(t);
  const bands = [0, 1].map(() => new Float32Array(64 * 64).fill(3));
  const path = await writeRaster(join(folder, 'a.tif'), { dataType: 'float32', bands });
  const asset = {
    'eo:bands': undefined,
    'raster:bands': undefined,
    nodata: 'nan',
    'raster:scale': 3,
    bands: [
      { name: 'one', 'eo:common_name': 'green' },
      { name: 'two', 'classification:classes': [{ value: 1 }], nodata: 255 },
    ],
  };
  await writeFile(join(folder, 'a.json'), item('a.tif', { stac_version: '1.1.0' }, asset));
  const [scene] = await describeScenes(path, {});
  assert.deepEqual(
    scene.groups.map(({ name, nodata, resampling, bands }) => [
      name,
      nodata,
      resampling,
      bands[0].commonName,
    ]),
    [
      ['10m-float32', Number.NaN, 'bilinear', 'green'],
      ['10m-float32-codes', 255, 'nearest', undefined],
    ],
  );
  assert.equal(scene.groups[0].bands[0].scale, 3);
});

test('an invalid Item is named in the error, and links to Items are not followed', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'a.tif'), twoBands);
  const sidecar = join(folder, 'a.json');
  const wrong: [string, RegExp][] = [
    ['{ no json', /not JSON/],
    ['[', /not JSON/],
    [`"${'x'.repeat(1_100_000)}"`, /1000000 bytes/],
    [item('a.tif', { id: 7 }), /id is not text/],
    [item('a.tif', { properties: { datetime: 'yesterday' } }), /properties.datetime is not a time/],
    [item('a.tif', { properties: { 'view:sun_azimuth': '170' } }), /view:sun_azimuth is not a number/],
    [
      item('a.tif', { properties: { 'view:sun_azimuth': 361 } }),
      /view:sun_azimuth is 361, and not from 0 to 360/,
    ],
    [item('a.tif', { properties: { 'view:sun_azimuth': -181 } }), /view:sun_azimuth is -181/],
    [item('a.tif', { assets: { image: 'a.tif' } }), /assets.image is not an object/],
    [item('a.tif', {}, { 'raster:bands': [{ scale: '1' }] }), /raster:bands\[0\].scale is not a number/],
    [item('a.tif', {}, { 'raster:bands': [{ nodata: 'none' }] }), /nodata is not a number/],
    [item('a.tif', { collection: '../x' }), /add --collection/],
  ];
  for (const [text, message] of wrong) {
    await writeFile(sidecar, text);
    await assert.rejects(describeScenes(path, {}), (error: Error & { code: string }) => {
      assert.equal(error.code, 'TW_INGEST_BAD_SIDECAR');
      assert.match(error.message, message);
      return error.message.includes(sidecar);
    });
  }
  const away = join(folder, 'away');
  await mkdir(away);
  const other = await writeRaster(join(away, 'a.tif'), twoBands);
  await writeFile(sidecar, item('a.tif'));
  await symlink(sidecar, join(away, 'a.json'));
  await assert.rejects(describeScenes(other, {}), {
    code: 'TW_INGEST_NO_COLLECTION',
    message: /--collection .* It also lacks a time \(--datetime/,
  });
});

test('bands with different nodata values form separate groups', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'a.tif'), twoBands);
  const raster = { 'raster:bands': [{ nodata: 1 }, { nodata: 2 }] };
  await writeFile(join(folder, 'a.json'), item('a.tif', {}, raster));
  const node = await testNode(t, join(folder, 'data'));
  const { failed } = await ingest(node, { href: path });
  assert.deepEqual(failed, []);
  const [{ groups }] = await tilesOf(node);
  assert.deepEqual(
    groups.map(({ name, nodata }) => [name, nodata]),
    [
      ['10m', 1],
      ['10m-nodata2', 2],
      ['mask', 0],
    ],
  );
});
