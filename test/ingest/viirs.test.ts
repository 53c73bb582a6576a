/** VIIRS grids as delivered, from small files that h5py wrote. */
import assert from 'node:assert/strict';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { Mask, readImage } from '../../src/raster/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

const folder = fileURLToPath(new URL('../../../test/fixtures/raster/hdf5/', import.meta.url));

test('a VNP09GA file with any name: two grids, reflectance, quality flags', async (t) => {
  const path = join(await tempFolder(t), 'renamed.dat');
  await copyFile(join(folder, 'vnp09ga.h5'), path);
  const [scene, ...others] = await describeScenes(path, {});
  assert.deepEqual(others, []);
  assert.equal(scene.id, 'VNP09GA_20210809_h11v04');
  assert.deepEqual([scene.collection.id, scene.platform], ['viirs-vnp09ga', 'suomi-npp']);
  assert.match(scene.collection.providers?.[1].name ?? '', /Land Processes/);
  assert.equal(new Date(scene.start).toISOString(), '2021-08-09T00:00:00.000Z');
  assert.equal(new Date(scene.end).toISOString(), '2021-08-09T23:59:59.000Z');
  assert.deepEqual(
    scene.groups.map(({ name, role, resampling, nodata, bands }) => [
      name,
      role,
      resampling,
      nodata,
      bands.map((band) => band.name).join(),
    ]),
    [
      ['463m', 'data', 'bilinear', -28672, 'I1,I2,I3'],
      ['927m', 'data', 'bilinear', -28672, 'M11,M3'],
      ['927m-qa', 'qa', 'nearest', 255, 'QF1,QF2'],
    ],
  );
  const [red] = scene.groups[0].bands;
  assert.deepEqual([red.commonName, red.scale, red.offset], ['red', 0.0001, 0]);
  assert.ok(Math.abs(scene.groups[1].resolution.x / scene.groups[0].resolution.x - 2) < 1e-5);
  assert.deepEqual(scene.warnings, []);

  const [first, second] = scene.quality.map(({ codes }) => codes);
  const clouds = [0b0000, 0b0100, 0b1000, 0b1100, 0b0011].map((value) => first[value]);
  assert.deepEqual(clouds, [255, 255, Mask.cloud, Mask.cloud, 255]);
  const rest = [0, 1 << 3, 1 << 5, (1 << 3) | (1 << 5), 1, 1 << 4].map((value) => second[value]);
  assert.deepEqual(rest, [Mask.clear, Mask.shadow, Mask.snow, Mask.shadow, Mask.clear, Mask.clear]);
  assert.deepEqual([first[255], second[255]], [Mask.notAssessed, Mask.notAssessed]);
});

test('VNP13A1: divisors, ranks of reliability, fill values', async () => {
  const [scene] = await describeScenes(join(folder, 'vnp13a1.h5'), {});
  assert.equal(scene.id, 'VNP13A1_20210805_h11v04');
  assert.equal(new Date(scene.end).toISOString(), '2021-08-20T23:59:59.000Z');
  assert.deepEqual(
    scene.groups.map(({ role, nodata, bands }) => [
      role,
      nodata,
      bands.map(({ name, scale }) => [name, scale]),
    ]),
    [
      ['data', -15000, [['NDVI', 0.0001]]],
      ['data', -1000, [['red_reflectance', 0.0001]]],
      ['qa', 255, [['pixel_reliability', 1]]],
    ],
  );
  const qa = scene.groups.at(-1);
  assert.deepEqual(
    scene.quality.map(({ group, band }) => [group, band]),
    [[qa?.name, 0]],
  );
  const { codes } = scene.quality[0];
  assert.deepEqual(
    [0, 6, 7, 8, 9, 10, 255].map((value) => codes[value]),
    [Mask.clear, Mask.clear, Mask.shadow, Mask.snow, Mask.cloud, 255, 255],
  );
});

test('a VIIRS file in tiles: stored numbers, cloud from the flags, twice the same', async (t) => {
  const temp = await tempFolder(t);
  const node = await testNode(t, join(temp, 'data'));
  const inputs = { href: join(folder, 'vnp09ga.h5'), precision: 4 };
  const { failed, scenes } = await ingest(node, inputs);
  assert.deepEqual(failed, []);
  assert.equal(scenes[0].collection, 'viirs-vnp09ga');
  const tiles = await tilesOf(node);
  assert.ok(tiles.length >= 2);
  const codes = new Set<number>();
  for (const tile of tiles) {
    const [fine, coarse, , mask] = tile.groups;
    assert.deepEqual(
      tile.groups.map((group) => group.name),
      ['463m', '927m', '927m-qa', 'mask'],
    );
    assert.equal(fine.width, 2 * coarse.width);
    const { bands } = await readImage(node.storage.tileImage(tile, mask.name));
    for (const code of bands[0]) codes.add(code);
    const { bands: pixels, header } = await readImage(node.storage.tileImage(tile, fine.name));
    assert.equal(header.nodata, -28672);
    // Each band has pixels of its own: the fixture adds 1010 from band to band.
    const differences = pixels[1].map((value, i) => pixels[2][i] - value).filter((_, i) => pixels[1][i] > 0);
    assert.ok(differences.length > 0 && differences.every((value) => Math.abs(value - 1010) <= 1));
  }
  // The flags have gaps where the bands of 927 m have data.
  const expected = [Mask.nodata, Mask.clear, Mask.cloud, Mask.shadow, Mask.snow, Mask.notAssessed];
  assert.deepEqual([...codes].sort(), expected.sort());
});

test('a truncated VIIRS file is refused with the reason', async (t) => {
  const path = join(await tempFolder(t), 'cut.h5');
  const whole = await readFile(join(folder, 'vnp09ga.h5'));
  await writeFile(path, whole.subarray(0, whole.length - 5000));
  await assert.rejects(describeScenes(path, {}), { code: 'TW_RASTER_CORRUPT', message: /truncated/ });
});
