/** Hyperion products that GDAL wrote by the format control book: no real one is small enough to be here. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { HYPERION_BANDS } from '../../src/ingest/formats/hyperion.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { readImage } from '../../src/raster/index.js';
import { gdalPython, needsPythonGdal } from '../raster/gdal.js';
import { finished, MAIN } from '../support/command.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';
import { sourcePlaces } from './source-places.js';

const ID = 'EO1H0440342010158110KF';
const [ROWS, COLUMNS] = [34, 23];
const GRID = { x: 500_010, y: 5_299_980, pixel: 30, width: COLUMNS, height: ROWS, epsg: 32633 };
const NODATA = -32768;

const isCalibrated = (number: number) => (number >= 8 && number <= 57) || (number >= 77 && number <= 224);

/** The expected pixels of a band in a tile. */
function pixel(number: number, row: number, column: number): number {
  const isOutside = row + column < 6;
  // The detectors are shifted by one pixel.
  const isUnseen = number <= 70 ? column === COLUMNS - 1 : column === 0;
  if (!isCalibrated(number) || isOutside || isUnseen) return NODATA;
  return number === 122 && row % 3 === 0 ? 0 : 10 * number + 50 * row + column - 100;
}

const WRITE = `
import sys
import numpy as np
from osgeo import gdal, osr
gdal.UseExceptions()
stem, rows, columns = sys.argv[1], *map(int, sys.argv[2:])
system = osr.SpatialReference()
system.ImportFromEPSG(32633)
r, c = np.meshgrid(np.arange(rows), np.arange(columns), indexing='ij')
for number in range(1, 243):
    values = 10 * number + 50 * r + c - 100
    if number == 122:
        values[r % 3 == 0] = 0
    values[(c == columns - 1) if number <= 70 else (c == 0)] = 0
    values[r + c < 6] = 0
    if not (8 <= number <= 57 or 77 <= number <= 224):
        values[:] = 0
    raster = gdal.GetDriverByName('GTiff').Create(f'{stem}_B{number:03d}_L1T.TIF', columns, rows, 1, gdal.GDT_Int16)
    raster.SetGeoTransform([500010, 30, 0, 5299980, 0, -30])
    raster.SetProjection(system.ExportToWkt())
    raster.GetRasterBand(1).WriteArray(values)
`;

const METADATA = `GROUP = L1_METADATA_FILE
  GROUP = METADATA_FILE_INFO
    PRODUCT_CREATION_TIME = 2010 159 03:12:44
    STATION_ID = "EDC"
  END_GROUP = METADATA_FILE_INFO
  GROUP = PRODUCT_METADATA
    SPACECRAFT_ID = "EO1"
    SENSOR_ID = "HYPERION"
    ACQUISITION_DATE = 2010-06-07
    START_TIME = 2010 158 18:41:37
    END_TIME = 2010 158 18:41:51
    BAND1_FILE_NAME = "${ID}_B001_L1T.TIF"
  END_GROUP = PRODUCT_METADATA
  GROUP = RADIANCE_SCALING
    SCALING_FACTOR_VNIR = 40.000000
    SCALING_FACTOR_SWIR = 80.000000
  END_GROUP = RADIANCE_SCALING
END_GROUP = L1_METADATA_FILE
END
`;

async function product(folder: string): Promise<string> {
  const path = join(folder, ID);
  await mkdir(path);
  gdalPython('-c', WRITE, join(path, ID), String(ROWS), String(COLUMNS));
  await writeFile(join(path, `${ID}_MTL_L1T.TXT`), METADATA);
  await writeFile(join(path, 'README.txt'), 'EO-1');
  return path;
}

test('the table of bands is that of the instrument', () => {
  assert.deepEqual(
    HYPERION_BANDS.map(({ number }) => number),
    Array.from({ length: 242 }, (_, i) => i + 1),
  );
  const band = (number: number) => HYPERION_BANDS[number - 1]!;
  assert.deepEqual([band(8).wavelength, band(57).wavelength, band(70).wavelength], [426.82, 925.41, 1057.68]);
  assert.deepEqual(
    [band(71).wavelength, band(77).wavelength, band(224).wavelength],
    [851.92, 912.45, 2395.5],
  );
  assert.deepEqual([band(70).detector, band(71).detector, band(242).fwhm], ['vnir', 'swir', 10.4077]);
  assert.equal(HYPERION_BANDS.filter(({ calibrated }) => calibrated).length, 198);
  // Neighbours of a detector are about 10 nm apart, so that no number of the table is missing or misspelled.
  for (const [i, { wavelength, detector, fwhm }] of HYPERION_BANDS.entries()) {
    const next = HYPERION_BANDS[i + 1];
    if (next?.detector === detector)
      assert.ok(Math.abs(next.wavelength - wavelength - 10.1) < 0.12, `band ${i + 1}`);
    assert.ok(fwhm > 10.2 && fwhm < 11.6);
  }
});

test('a product: bands, factors, time', needsPythonGdal, async (t) => {
  const path = await product(await tempFolder(t));
  const [scene, ...others] = await describeScenes(path, {});
  assert.deepEqual(others, []);
  assert.equal(scene!.id, ID);
  assert.deepEqual([scene!.collection.id, scene!.platform], ['hyperion-l1t', 'eo-1']);
  assert.equal(new Date(scene!.start).toISOString(), '2010-06-07T18:41:37.000Z');
  assert.equal(new Date(scene!.end).toISOString(), '2010-06-07T18:41:51.000Z');
  const [group, ...more] = scene!.groups;
  assert.deepEqual(more, []);
  assert.deepEqual([group!.name, group!.resampling, group!.nodata], ['30m', 'nearest', NODATA]);
  assert.deepEqual(
    group!.bands.map(({ name, scale, good }) => [name, scale, good !== false]),
    HYPERION_BANDS.map(({ number }) => [
      `B${String(number).padStart(3, '0')}`,
      number <= 70 ? 1 / 40 : 1 / 80,
      isCalibrated(number),
    ]),
  );
  assert.equal(group!.bands.find(({ commonName }) => commonName === 'red')!.name, 'B031');
  assert.match(scene!.warnings.join('\n'), /radiance/);
  const [same] = await describeScenes(join(path, `${ID}_MTL_L1T.TXT`), {});
  assert.deepEqual(same!.groups, scene!.groups);
});

test(
  'each pixel of the tiles is in its place, and a radiance of 0 is a value',
  needsPythonGdal,
  async (t) => {
    const folder = await tempFolder(t);
    const node = await testNode(t, join(folder, 'data'));
    const { failed } = await ingest(node, { href: await product(folder), precision: 5 });
    assert.deepEqual(failed, []);
    let compared = 0;
    for (const tile of await tilesOf(node)) {
      const places = await sourcePlaces(tile, '30m', GRID);
      const { bands } = await readImage(node.storage.tileImage(tile, '30m'));
      const mask = (await readImage(node.storage.tileImage(tile, 'mask'))).bands[0]!;
      for (const [i, place] of places.entries()) {
        const [row, column] = [Math.floor(place / COLUMNS), place % COLUMNS];
        const expected = HYPERION_BANDS.map(({ number }) =>
          place < 0 ? NODATA : pixel(number, row, column),
        );
        assert.deepEqual(
          Array.from(bands, (band) => band[i]),
          expected,
          `row ${row}, column ${column}`,
        );
        const isValid = expected.some((value) => value !== NODATA);
        assert.equal(mask[i] !== 0, isValid, `mask of row ${row}, column ${column}`);
        compared += Number(place >= 0);
      }
    }
    assert.ok(compared > 0.9 * ROWS * COLUMNS, `${compared} pixels were compared`);
  },
);

test(
  'the lowest number of open files that is accepted suffices for 242 bands',
  needsPythonGdal,
  async (t) => {
    const folder = await tempFolder(t);
    const path = await product(folder);
    const command = [
      process.execPath,
      MAIN,
      'ingest',
      path,
      '--data',
      join(folder, 'data'),
      '--precision',
      '5',
    ];
    const limited = ['-c', 'ulimit -n 256; exec "$@"', 'sh', ...command];
    const { code, stdout, stderr } = await finished(
      spawn('sh', limited, { stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    assert.equal(code, 0, stdout + stderr);
  },
);

test('damaged products are refused; bands without calibration may be missing', needsPythonGdal, async (t) => {
  const path = await product(await tempFolder(t));
  const mtl = join(path, `${ID}_MTL_L1T.TXT`);
  const file = (band: string) => join(path, `${ID}_${band}_L1T.TIF`);
  await rm(file('B003'));
  assert.equal((await describeScenes(path, {}))[0]!.groups[0]!.bands.length, 241);
  await rename(file('B100'), `${file('B100')}.part`);
  await assert.rejects(describeScenes(path, {}), { code: 'TW_INGEST_MISSING_BAND', message: /B100/ });
  await writeRaster(file('B100'), { width: COLUMNS, height: ROWS, pixel: 30 });
  await assert.rejects(describeScenes(path, {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /B100_L1T\.TIF.*uint16/,
  });
  await rename(`${file('B100')}.part`, file('B100'));
  const text = await readFile(mtl, 'utf8');
  await writeFile(mtl, text.replace('SCALING_FACTOR_SWIR = 80.000000', 'SCALING_FACTOR_SWIR = none'));
  await assert.rejects(describeScenes(path, {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /MTL_L1T\.TXT.*SCALING_FACTOR_SWIR is none/,
  });
  await writeFile(mtl, text.replace('ACQUISITION_DATE', 'ACQUISITION_DAY'));
  await assert.rejects(describeScenes(path, {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /ACQUISITION_DATE/,
  });
  await rm(mtl);
  await assert.rejects(describeScenes(path, {}), { code: 'TW_INGEST_BAD_METADATA', message: /MTL_L1T\.TXT/ });
});
