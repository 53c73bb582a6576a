/** EMIT products that netCDF4 wrote by the guides, see make.py beside them: no real one is small enough to be here. */
import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { Mask, readImage } from '../../src/raster/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { sourcePlaces } from './source-places.js';

const folder = fileURLToPath(new URL('../../../test/fixtures/ingest/spectrometers/', import.meta.url));
const RFL = 'EMIT_L2A_RFL_001_20230316T045133_2307503_005.nc';
const MASK = RFL.replace('RFL', 'MASK');

const [DOWN, CROSS, BANDS] = [30, 26, 20];
const GRID = { x: 15, y: 48, pixel: 0.00054, width: 44, height: 40, epsg: 4326 };
const NODATA = -9999;

/** Line and sample of the swath that a pixel of the map shows. */
function inSwath(x: number, y: number) {
  const sample = Math.floor((130 + 8 * (x - 22) - 6 * (y - 20)) / 10);
  const line = Math.floor((150 + 6 * (x - 22) + 8 * (y - 20)) / 10);
  return sample >= 0 && sample < CROSS && line >= 0 && line < DOWN ? { line, sample } : undefined;
}

function reflectance(band: number, line: number, sample: number): number {
  if (line === 0 || (line === 5 && sample === 6 && band === 4)) return NODATA;
  if (line === 6 && sample === 6 && band === 13) return NODATA;
  return band / 32 + (32 * line + sample) / 2048;
}

/** Pixels whose ground is hidden, according to the flags. */
function maskCode(line: number, sample: number): number {
  if (line === 0 || (line === 5 && sample === 6)) return Mask.nodata;
  if (sample < 8 || (sample >= 12 && sample < 15)) return Mask.cloud;
  return line >= 28 ? Mask.shadow : Mask.clear;
}

test('a granule: bands, bad bands, time, flags of the mask file', async () => {
  const [scene, ...others] = await describeScenes(join(folder, RFL), {});
  assert.deepEqual(others, []);
  assert.equal(scene!.id, 'EMIT_L2A_RFL_001_20230316T045133_2307503_005');
  assert.deepEqual([scene!.collection.id, scene!.platform], ['emit-l2a-rfl', 'iss']);
  assert.equal(new Date(scene!.start).toISOString(), '2023-03-16T04:51:33.000Z');
  assert.equal(new Date(scene!.end).toISOString(), '2023-03-16T04:51:45.000Z');
  assert.deepEqual(
    scene!.groups.map(({ name, role, resampling, nodata, bands }) => [
      name,
      role,
      resampling,
      nodata,
      bands.length,
    ]),
    [
      ['60m', 'data', 'nearest', NODATA, BANDS],
      ['60m-qa', 'qa', 'nearest', 255, 5],
    ],
  );
  const { bands } = scene!.groups[0]!;
  assert.deepEqual(
    [bands[0], bands[8], bands[19]].map((band) => [band!.wavelength, band!.fwhm, band!.scale, band!.offset]),
    [
      [381, 7.5, 1, 0],
      [833, 8.5, 1, 0],
      [2493, 9.875, 1, 0],
    ],
  );
  assert.deepEqual(
    bands.filter(({ good }) => good === false).map(({ wavelength }) => wavelength),
    [1380, 1940],
  );
  assert.equal(bands[4]!.commonName, 'red');
  assert.deepEqual(scene!.warnings, []);
});

test('each pixel of the tiles is the one of the lookup table', {
  skip: !hasGdal && 'needs GDAL',
}, async (t) => {
  const node = await testNode(t, await tempFolder(t));
  const { failed } = await ingest(node, { href: join(folder, RFL), precision: 5 });
  assert.deepEqual(failed, []);
  const seen = new Map<number, number>();
  let compared = 0;
  for (const tile of await tilesOf(node)) {
    const places = await sourcePlaces(tile, '60m', GRID);
    const { bands } = await readImage(node.storage.tileImage(tile, '60m'));
    const mask = (await readImage(node.storage.tileImage(tile, 'mask'))).bands[0]!;
    for (const [i, place] of places.entries()) {
      const at = place < 0 ? undefined : inSwath(place % GRID.width, Math.floor(place / GRID.width));
      assert.deepEqual(
        Array.from(bands, (band) => band[i]),
        Array.from({ length: BANDS }, (_, band) => (at ? reflectance(band, at.line, at.sample) : NODATA)),
        `pixel ${place % GRID.width}, ${Math.floor(place / GRID.width)}`,
      );
      const code = at ? maskCode(at.line, at.sample) : Mask.nodata;
      assert.equal(mask[i], code, `mask of ${JSON.stringify(at)}`);
      seen.set(code, (seen.get(code) ?? 0) + 1);
      compared += Number(at !== undefined);
    }
  }
  assert.ok(compared > 400, `${compared} pixels were compared`);
  assert.deepEqual([...seen.keys()].sort(), [Mask.nodata, Mask.clear, Mask.cloud, Mask.shadow]);
});

test('a folder has a scene for each granule, even with other files in it', async (t) => {
  const temp = await tempFolder(t);
  const second = RFL.replace('_005', '_006');
  await copyFile(join(folder, RFL), join(temp, RFL));
  await copyFile(join(folder, MASK), join(temp, MASK));
  await copyFile(join(folder, 'emit-without-good.nc'), join(temp, second));
  await writeFile(join(temp, RFL.replace('RFL', 'RFLUNCERT')), 'no file of ours');
  const scenes = await describeScenes(temp, {});
  assert.deepEqual(
    scenes.map(({ id, groups, quality }) => [id, groups.length, quality.length]),
    [
      ['EMIT_L2A_RFL_001_20230316T045133_2307503_005', 2, 5],
      ['EMIT_L2A_RFL_001_20230316T045133_2307503_006', 1, 0],
    ],
  );
  assert.match(scenes[1]!.warnings.join('\n'), /good_wavelengths is missing.*\n.*no EMIT_L2A_MASK file/);
  assert.ok(scenes[1]!.groups[0]!.bands.every(({ good }) => good === undefined));
});

test('a renamed file is identified by its datasets', async (t) => {
  const path = join(await tempFolder(t), 'renamed.nc');
  await copyFile(join(folder, RFL), path);
  const [scene] = await describeScenes(path, {});
  assert.deepEqual([scene!.id, scene!.groups.length], ['renamed', 1]);
});

test('incomplete products are refused with the file and the missing part', async (t) => {
  const temp = join(await tempFolder(t), 'granule');
  await mkdir(temp);
  const file = join(temp, RFL);
  const mask = join(temp, MASK);
  await copyFile(join(folder, 'emit-plain-rfl.h5'), file);
  await copyFile(join(folder, 'emit-plain-mask.h5'), mask);
  assert.equal((await describeScenes(temp, {}))[0]!.groups.length, 2);
  for (const [of, name, other, code, message] of [
    [file, 'glt_y', 'glt_z', 'TW_RASTER_NO_LAYER', /glt_y/],
    [file, 'wavelengths', 'wavelengthz', 'TW_INGEST_BAD_METADATA', /wavelengths has 0 values/],
    [file, 'fwhm', 'fwhn', 'TW_INGEST_BAD_METADATA', /fwhm has 0 values/],
    [file, 'geotransform', 'geotransforn', 'TW_INGEST_BAD_METADATA', /geotransform/],
    [file, 'spatial_ref', 'spatial_rex', 'TW_INGEST_BAD_METADATA', /spatial_ref/],
    [file, 'time_coverage_start', 'time_coverage_stark', 'TW_INGEST_BAD_METADATA', /time_coverage_start/],
    [mask, 'Cirrus flag', 'Cyrrus flag', 'TW_INGEST_BAD_METADATA', /no cirrus flag/],
    [mask, 'glt_x', 'glt_w', 'TW_RASTER_NO_LAYER', /glt_x/],
  ] as const) {
    await copyFile(join(folder, 'emit-plain-rfl.h5'), file);
    await copyFile(join(folder, 'emit-plain-mask.h5'), mask);
    const bytes = await readFile(of, 'latin1');
    assert.ok(bytes.includes(name));
    await writeFile(of, bytes.replaceAll(name, other), 'latin1');
    await assert.rejects(describeScenes(temp, {}), (error: { code: string; message: string }) => {
      assert.equal(error.code, code, `${name}: ${error.message}`);
      assert.match(error.message, message);
      assert.ok(error.message.includes(of), error.message);
      return true;
    });
  }
});
