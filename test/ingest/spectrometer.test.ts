/** Cubes of imaging spectrometers: bands have wavelengths, and some of them hold nothing. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TilewrightNode } from '../../src/node.js';
import { gdalName, readImage } from '../../src/raster/index.js';
import { assertDataParts } from '../derive/tiles.js';
import { writeEnvi } from '../raster/envi.js';
import { gdal, needsGdal } from '../raster/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { realData, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const REAL = join(realData, 'hyperspectral-enmap-potsdam');
const needsReal = { skip: existsSync(REAL) ? false : 'no real scenes beside the repository' };

const SIDE = 40;
const COUNT = 20;
const HOLE = -9999;

/**
 * 20 bands from 450 to 1,400 nm. The first pixel holds no data in any band, pixel 1 none in band 3, which is good, pixel 2 none in
 * band 8, which is bad. Band 12 is empty.
 */
function cube() {
  const bands = Array.from({ length: COUNT }, (_, band) =>
    Array.from({ length: SIDE * SIDE }, (_, i) => {
      const isHole = i === 0 || (i === 1 && band === 3) || (i === 2 && band === 8) || band === 12;
      return isHole ? HOLE : 1000 + 100 * band + (i % 97);
    }),
  );
  const wavelengths = bands.map((_, band) => 450 + 50 * band);
  return {
    ...({ width: SIDE, height: SIDE, bands, type: 'int16', interleave: 'bil' } as const),
    lines: [
      'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
      `data ignore value = ${HOLE}`,
      'acquisition time = 2024-06-01T10:00:00Z',
      'wavelength units = Nanometers',
      `wavelength = {${wavelengths.join(', ')}}`,
      `fwhm = {${wavelengths.map(() => 7.5).join(', ')}}`,
      `bbl = {${bands.map((_, band) => (band === 8 ? 0 : 1)).join(', ')}}`,
      'reflectance scale factor = 10000',
    ],
  };
}

test('bad and empty bands do not affect coverage; spectra stay measured ones', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  writeEnvi(join(folder, 'cube.bil'), cube());
  const { scenes, failed } = await ingest(node, {
    href: join(folder, 'cube.hdr'),
    collection: 'cubes',
    precision: 5,
  });
  assert.deepEqual(failed, []);
  assert.equal(scenes.length, 1);
  await assertDataParts(node.storage);
  const [tile] = await tilesOf(node);
  const [group] = tile!.groups;
  assert.equal(group!.codes, undefined);
  assert.deepEqual(
    group!.bands.map(({ name }) => name),
    Array.from({ length: COUNT }, (_, band) => `b${band + 1}`),
  );
  const { wavelength, fwhm, good, scale, validPercent } = group!.bands[8]!;
  assert.deepEqual([wavelength, fwhm, good, scale], [850, 7.5, false, 0.0001]);
  assert.ok(validPercent > 0);
  assert.equal(group!.bands[12]!.validPercent, 0);
  assert.equal(group!.bands[4]!.commonName, 'red');

  const { bands } = await readImage(node.storage.tileImage(tile!, group!.name));
  const mask = await readImage(node.storage.tileImage(tile!, 'mask'));
  const source = cube().bands;
  // Each pixel of the tile is one pixel of the cube, in all of its bands.
  const spectra = new Set(source[0]!.map((_, i) => source.map((band) => band[i]).join()));
  let valid = 0;
  for (let i = 0; i < bands[0]!.length; i++) {
    const spectrum = Array.from(bands, (band) => band[i]!);
    if (spectrum.some((value) => value !== HOLE)) assert.ok(spectra.has(spectrum.join()), spectrum.join());
    const hasData = spectrum.some((value) => value !== HOLE);
    assert.equal(mask.bands[0]![i] !== 0, hasData);
    valid += Number(spectrum.every((value, band) => band === 8 || band === 12 || value !== HOLE));
  }
  assert.ok(valid > 1000);
  assert.equal(tile!.coverage, (100 * valid) / bands[0]!.length);
});

test('the header, the image and their folder are the same scene', async (t) => {
  const folder = await tempFolder(t);
  writeEnvi(join(folder, 'cube.bil'), cube());
  const node = await testNode(t, join(folder, 'data'));
  for (const path of ['cube.bil', 'cube.hdr', '.']) {
    const { scenes, failed } = await ingest(node, {
      href: join(folder, path),
      collection: 'cubes',
      precision: 5,
      id: 'one',
    });
    assert.deepEqual([failed, scenes.length, scenes[0]!.unchanged], [[], 1, path !== 'cube.bil']);
  }
});

test('GDAL reads the wavelengths of the tiles', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  writeEnvi(join(folder, 'cube.bil'), cube());
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: join(folder, 'cube.hdr'), collection: 'cubes', precision: 5 });
  const [tile] = await tilesOf(node);
  const info = JSON.parse(
    gdal('gdalinfo', '-json', '-mdd', 'all', gdalName(node.storage.tileImage(tile!, tile!.groups[0]!.name))),
  );
  const { '': items, IMAGERY } = info.bands[8].metadata;
  assert.deepEqual(items, { bbl: '0', fwhm: '7.5', wavelength: '850', wavelength_units: 'Nanometers' });
  assert.deepEqual(IMAGERY, { CENTRAL_WAVELENGTH_UM: '0.85', FWHM_UM: '0.0075' });
});

test('bands are found by wavelength, and Items give it in micrometres', async (t) => {
  const folder = await tempFolder(t);
  writeEnvi(join(folder, 'cube.bil'), cube());
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: join(folder, 'cube.hdr'), collection: 'cubes', precision: 5 });
  const value = async (expression: string) => {
    const payload = { geometry: { type: 'Point', coordinates: [15.008, 47.848] }, expression };
    const answer = await node.server.inject({ method: 'POST', url: '/timeseries', payload });
    return answer.statusCode === 200 ? answer.json().series[0].value : answer.json().detail;
  };
  const [b5, b10] = [await value('b5'), await value('b10')];
  assert.ok(b5 > 0.1 && b10 > b5, `${b5} ${b10}`);
  assert.equal(await value('660nm'), b5);
  assert.equal(await value('0.66um'), b5);
  assert.equal(await value('red'), b5);
  // 850 nm is bad: its neighbours are 50 nm away.
  assert.match(await value('850nm'), /no band "850nm"; the nearest good band is b8 at 800 nm/);
  assert.equal(await value('899.5nm'), b10);
  assert.match(await value('2.2um'), /no band "2.2um"; the nearest good band is b20 at 1400 nm/);
  const map = await node.server.inject('/collections/cubes/items?limit=1');
  const { assets } = map.json().features[0];
  const { 'eo:bands': bands, 'raster:bands': encodings, ...asset } = assets['30m'];
  assert.deepEqual(bands[8], {
    name: 'b9',
    center_wavelength: 0.85,
    full_width_half_max: 0.0075,
    bad_band: true,
  });
  assert.equal(encodings, undefined);
  assert.deepEqual(
    [asset.title, asset.data_type, asset.nodata, asset['raster:scale']],
    ['30m: 20 bands from 450 to 1400 nm', 'int16', HOLE, 0.0001],
  );
});

test('Items with a spectrum declare wavelengths by the extension hsi', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  // The first band is bad, so the spectrum begins with the second.
  const lines = cube().lines.map((line) =>
    line.startsWith('bbl') ? `bbl = {0, ${new Array(COUNT - 1).fill(1).join(', ')}}` : line,
  );
  writeEnvi(join(folder, 'cube.bil'), { ...cube(), lines });
  await ingest(node, { href: join(folder, 'cube.hdr'), collection: 'cubes', precision: 5 });
  await writeRaster(join(folder, 'other.tif'));
  const flags = { collection: 'other', datetime: '2024-06-05T10:00:00Z', precision: 5 };
  await ingest(node, { href: join(folder, 'other.tif'), ...flags });

  const search = async (filter: string) => {
    const answer = await node.server.inject(`/search?limit=1000&filter=${encodeURIComponent(filter)}`);
    assert.equal(answer.statusCode, 200, answer.body);
    const { features } = answer.json();
    return new Set(features.map(({ collection }: { collection: string }) => collection));
  };
  const cubes = new Set(['cubes']);
  const none = new Set();
  assert.deepEqual(await search('"hsi:wavelength_min" = 0.5'), cubes);
  assert.deepEqual(await search('hsi:wavelength_min <= 0.5 AND hsi:wavelength_max >= 1.4'), cubes);
  assert.deepEqual(await search('hsi:wavelength_min < 0.5'), none);
  assert.deepEqual(await search('NOT hsi:wavelength_min < 0.5'), cubes);
  assert.deepEqual(await search('hsi:wavelength_max IN (1.4, 2.5)'), cubes);
  assert.deepEqual(await search('hsi:wavelength_max BETWEEN 1.3 AND 2'), cubes);
  assert.deepEqual(await search('hsi:wavelength_max IS NULL'), new Set(['other']));

  const ask = async (url: string) => (await node.server.inject(url)).json();
  const { properties } = await ask('/queryables');
  assert.deepEqual(
    [properties['hsi:wavelength_min'].type, properties['hsi:wavelength_min'].maximum],
    ['number', undefined],
  );
  assert.equal(properties['eo:cloud_cover'].maximum, 100);
  const HSI = 'https://stac-extensions.github.io/hsi/v1.0.0/schema.json';
  for (const url of [
    '/collections/cubes/items?limit=1',
    '/search?collections=cubes&limit=1&fields=properties,stac_extensions',
  ]) {
    const [item] = (await ask(url)).features;
    assert.deepEqual(
      [item.properties['hsi:wavelength_min'], item.properties['hsi:wavelength_max']],
      [0.5, 1.4],
    );
    assert.ok(item.stac_extensions.includes(HSI));
  }
  const [other] = (await ask('/collections/other/items?limit=1')).features;
  assert.equal(other.properties['hsi:wavelength_min'], undefined);
  assert.ok(!other.stac_extensions.includes(HSI));
});

test('the EnMAP cube of Potsdam has pixels, although six of its bands are empty', needsReal, async (t) => {
  const folder = await tempFolder(t);
  for (const name of ['enmap-potsdam.hdr', 'enmap-potsdam.bil'])
    await copyFile(join(REAL, name), join(folder, name));
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: join(folder, 'enmap-potsdam.hdr'), collection: 'enmap' });
  const tiles = await tilesOf(node);
  assert.deepEqual(tiles.map(({ geocode }) => geocode).sort(), ['u334', 'u336']);
  // 12 chips of 32 x 32 pixels.
  const valid = tiles.reduce(
    (sum, { coverage, groups: [{ width, height }] }) => sum + (coverage / 100) * width! * height!,
    0,
  );
  assert.ok(Math.abs(valid / 12_288 - 1) < 0.05, `${valid} pixels`);
  assert.deepEqual(
    tiles[0]!.groups[0]!.bands.flatMap(({ good }, band) => (good === false ? [band + 1] : [])),
    [130, 131, 132, 133, 134, 135],
  );
});

test('split cubes keep measured spectra, their wavelengths, and the coverage of the good bands', async (t) => {
  const folder = await tempFolder(t);
  writeEnvi(join(folder, 'cube.bil'), cube());
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: join(folder, 'cube.hdr'), collection: 'cubes', precision: 5 });
  await runProcess(node, 'split', { precision: 6 });
  const tiles = await tilesOf(node);
  const source = cube().bands;
  const spectra = new Set(source[0]!.map((_, i) => source.map((band) => band[i]).join()));
  const validOf = new Map<string, number>();
  for (const tile of tiles) {
    const [group] = tile.groups;
    assert.deepEqual(group!.bands[8]!.good, false);
    const { bands, header } = await readImage(node.storage.tileImage(tile, group!.name));
    assert.equal(header.bandTags[3]!.wavelength, 600);
    let valid = 0;
    for (let i = 0; i < bands[0]!.length; i++) {
      const spectrum = Array.from(bands, (band) => band[i]!);
      if (spectrum.some((value) => value !== HOLE)) assert.ok(spectra.has(spectrum.join()), tile.id);
      valid += Number(spectrum.every((value, band) => band === 8 || band === 12 || value !== HOLE));
    }
    assert.ok(Math.abs(tile.coverage - (100 * valid) / bands[0]!.length) < 1e-9, tile.id);
    validOf.set(tile.source, (validOf.get(tile.source) ?? 0) + valid);
  }
  // The cells of a split have their own pixel grids, so that some pixels are measured twice or not at all.
  const [raw, split] = [validOf.get('raw')!, validOf.get('split')!];
  assert.ok(Math.abs(split / raw - 1) < 0.1, `${split} of ${raw}`);
});

async function runProcess(node: TilewrightNode, process: string, inputs: object): Promise<void> {
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const url = `/processes/${process}/execution`;
  const answer = await node.server.inject({ method: 'POST', url, headers, payload: { inputs } });
  assert.equal(answer.statusCode, 201, answer.body);
  const { jobID } = answer.json();
  for (;;) {
    const { status, error } = (await node.server.inject(`/jobs/${jobID}`)).json();
    if (status === 'successful') return;
    assert.notEqual(status, 'failed', JSON.stringify(error));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
