/** Cubes without georeferencing: options set it, for every way of starting an ingest. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, httpTransport } from '../../src/client/index.js';
import type { IngestResults } from '../../src/ingest/index.js';
import { readImage } from '../../src/raster/index.js';
import { headerOf, writeEnvi } from '../raster/envi.js';
import { gdal, needsGdal } from '../raster/gdal.js';
import { matFile } from '../raster/mat.js';
import { tilewright } from '../support/command.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const SIDE = 40;
const COUNT = 20;
const PLACE = 'EPSG:32633,500000,5300000,501200,5298800';
const MAP_INFO = 'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}';
const FLAGS = { collection: 'cubes', precision: 5, datetime: '2024-06-01T10:00:00Z' };

const value = (row: number, column: number, band: number) => 100 * band + ((7 * row + column) % 97);
const bands = Array.from({ length: COUNT }, (_, band) =>
  Array.from({ length: SIDE * SIDE }, (_, i) => value(Math.floor(i / SIDE), i % SIDE, band)),
);
const envi = (lines: string[]) =>
  ({ width: SIDE, height: SIDE, bands, type: 'int16', interleave: 'bil', lines }) as const;

/** The same cube, column-major. */
const mat = () =>
  matFile([
    {
      name: 'indian',
      dimensions: [SIDE, SIDE, COUNT],
      type: 'int16',
      compressed: true,
      values: bands.flatMap((band) =>
        Array.from({ length: SIDE * SIDE }, (_, i) => band[(i % SIDE) * SIDE + Math.floor(i / SIDE)]!),
      ),
    },
    { name: 'other', dimensions: [2, 2, 2], values: new Array(8).fill(1), type: 'uint8' },
  ]);

/** The pixels of all tiles of a collection, by geocode. */
async function pixelsOf(node: Awaited<ReturnType<typeof testNode>>, collection: string) {
  const found = new Map<string, number[][]>();
  for (const tile of (await tilesOf(node)).filter((one) => one.collection === collection)) {
    const raster = await readImage(node.storage.tileImage(tile, tile.groups[0]!.name));
    found.set(
      tile.geocode,
      raster.bands.map((band) => Array.from(band, (one) => (Number.isNaN(one) ? -1 : one))),
    );
  }
  return found;
}

test('a cube with --position has the same tiles as one with own georeferencing', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  writeEnvi(join(folder, 'placed.bil'), envi([MAP_INFO]));
  writeEnvi(join(folder, 'plain.bil'), envi([]));
  await writeFile(join(folder, 'plain.mat'), mat());
  const wavelengths = bands.map((_, band) => 450 + 50 * band);
  const run = async (name: string, collection: string, more: object) => {
    const { failed, scenes } = await ingest(node, {
      href: join(folder, name),
      ...FLAGS,
      wavelengths,
      collection,
      scale: 1,
      ...more,
    });
    assert.deepEqual(failed, []);
    return scenes[0]!;
  };
  assert.deepEqual((await run('placed.bil', 'placed', {})).warnings, []);
  const stored = /^its files are already stored as placed\/placed_20240601T100000Z; /;
  // The image has the bytes of the other.
  for (const [name, collection] of [
    ['plain.bil', 'plain'],
    ['placed.bil', 'same'],
  ] as const) {
    const [warning, ...others] = (await run(name, collection, { position: PLACE })).warnings;
    assert.deepEqual(others, []);
    assert.match(warning!, stored);
  }
  const matlab = await run('plain.mat', 'matlab', { position: PLACE, layer: 'indian' });
  assert.deepEqual(matlab.warnings, []);
  const elsewhere = PLACE.replace('5300000', '5300030').replace('5298800', '5298830');
  const given = { ...FLAGS, wavelengths, collection: 'moved', scale: 1, position: elsewhere };
  const { scenes } = await ingest(node, { href: join(folder, 'placed.bil'), ...given });
  assert.ok(scenes[0]!.warnings.includes('the file has a position of its own; --position replaces it'));
  const wanted = await pixelsOf(node, 'placed');
  assert.ok(wanted.size >= 1);
  assert.deepEqual(await pixelsOf(node, 'plain'), wanted);
  assert.deepEqual(await pixelsOf(node, 'matlab'), wanted);
  const [tile] = (await tilesOf(node)).filter(({ collection }) => collection === 'matlab');
  assert.deepEqual(
    tile!.groups[0]!.bands.map(({ wavelength }) => wavelength),
    wavelengths,
  );
  assert.equal(tile!.groups[0]!.bands[4]!.commonName, 'red');

  // The same bytes at another place are another scene.
  const position = 'EPSG:32633,500300,5300000,501500,5298800';
  const moved = await run('plain.bil', 'plain', { position });
  assert.deepEqual([moved.unchanged, moved.replaced], [false, true]);
  const again = await run('plain.bil', 'plain', { position });
  assert.equal(again.unchanged, true);
});

test('a corrected header replaces the scene, although the image is the same', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const once = async (lines: string[], interleave: 'bil' | 'bsq') => {
    writeEnvi(join(folder, 'cube.dat'), envi(lines));
    await writeFile(join(folder, 'cube.hdr'), headerOf({ ...envi(lines), interleave }));
    const { scenes, failed } = await ingest(node, { href: join(folder, 'cube.hdr'), ...FLAGS });
    assert.deepEqual(failed, []);
    return scenes[0]!.unchanged;
  };
  assert.equal(await once([MAP_INFO], 'bsq'), false);
  assert.equal(await once([MAP_INFO], 'bsq'), true);
  assert.equal(await once([MAP_INFO], 'bil'), false);
  assert.equal(await once([MAP_INFO.replace('500000', '500030')], 'bil'), false);
});

test('GDAL agrees on the corners', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  writeEnvi(join(folder, 'plain.bil'), envi([]));
  const corners = ['500000', '5300000', '501200', '5298800'];
  const placed = join(folder, 'by-gdal.tif');
  gdal(
    'gdal_translate',
    '-q',
    '-a_srs',
    'EPSG:32633',
    '-a_ullr',
    ...corners,
    join(folder, 'plain.bil'),
    placed,
  );
  const wavelengths = [450, 1400];
  await ingest(node, { href: placed, ...FLAGS, wavelengths, collection: 'by-gdal' });
  await ingest(node, { href: join(folder, 'plain.bil'), ...FLAGS, wavelengths, position: PLACE });
  assert.deepEqual(await pixelsOf(node, 'cubes'), await pixelsOf(node, 'by-gdal'));
});

test('--position georeferences a GeoTIFF without a position, or with a wrong one', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const here = await writeRaster(join(folder, 'here.tif'));
  const there = await writeRaster(join(folder, 'there.tif'), { x: 0, y: 0 });
  await ingest(node, { href: here, ...FLAGS, collection: 'here' });
  const position = 'EPSG:32633,500000,5300000,500640,5299360';
  await ingest(node, { href: there, ...FLAGS, collection: 'there', position });
  assert.deepEqual(await pixelsOf(node, 'there'), await pixelsOf(node, 'here'));
});

test('invalid options are refused with the expected form', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  writeEnvi(join(folder, 'plain.bil'), envi([]));
  const refused = async (flags: object, code: string, message: RegExp) => {
    const { failed } = await ingest(node, { href: join(folder, 'plain.bil'), ...FLAGS, ...flags });
    assert.equal(failed[0]?.code, code, JSON.stringify(failed));
    assert.match(failed[0]!.message, message);
  };
  await refused({}, 'TW_RASTER_NO_CRS', /--position/);
  for (const position of [
    '32633,0,1,1,0',
    'EPSG:32633',
    'EPSG:32633,0,1,1',
    'EPSG:32633,0,x,1,0',
    'EPSG:32633,0,,1,0',
  ])
    await refused({ position }, 'TW_INGEST_BAD_OPTION', /EPSG:CODE,ULX/);
  await refused({ position: 'EPSG:32633,0,0,1,1' }, 'TW_INGEST_BAD_OPTION', /south-east/);
  await refused({ position: 'EPSG:999999,0,1,1,0' }, 'TW_RASTER_UNKNOWN_CRS', /999999/);
  await refused({ position: PLACE, wavelengths: [450, 500, 550] }, 'TW_INGEST_BAD_OPTION', /expected 20/);
  await refused({ position: PLACE, wavelengths: [0.45, 1.4] }, 'TW_INGEST_BAD_OPTION', /nanometres/);
  for (const count of [2, 20])
    await refused(
      { position: PLACE, wavelengths: new Array(count).fill(500) },
      'TW_INGEST_BAD_OPTION',
      /that differ/,
    );
});

test('the command and uploads accept the option, too', async (t) => {
  const folder = await tempFolder(t);
  const cube = join(folder, 'cube.mat');
  await writeFile(cube, mat());
  await writeFile(join(folder, 'nm.txt'), bands.map((_, band) => `${450 + 50 * band}\n`).join(''));
  const data = join(folder, 'data');
  const flags = ['--collection', 'cubes', '--datetime', FLAGS.datetime, '--precision', '5'];
  const own = ['--layer', 'indian', '--position', PLACE, '--wavelengths', join(folder, 'nm.txt')];
  const made = await tilewright('ingest', cube, '--data', data, ...flags, ...own, '--format', 'json');
  assert.equal(made.code, 0, made.stderr);
  const bad = await tilewright(
    'ingest',
    cube,
    '--data',
    data,
    ...flags,
    '--wavelengths',
    join(folder, 'no.txt'),
  );
  assert.equal(bad.code, 2);
  assert.match(bad.stderr, /cannot be read/);

  const node = await testNode(t, data);
  const client = new Client(httpTransport(await node.listen('127.0.0.1', 0)));
  const options = { ...FLAGS, layer: 'indian', position: PLACE, wavelengths: [450, 1400] };
  const { results } = await client.upload<IngestResults>(cube, options);
  assert.deepEqual(
    results.scenes.map(({ unchanged }) => unchanged),
    [true],
  );
});
