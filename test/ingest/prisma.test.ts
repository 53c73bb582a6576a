/** PRISMA products that h5py wrote by the product specification, see make.py beside them: no real product is small enough for a fixture. */
import assert from 'node:assert/strict';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { readImage } from '../../src/raster/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { sourcePlaces } from './source-places.js';

const folder = fileURLToPath(new URL('../../../test/fixtures/ingest/spectrometers/', import.meta.url));
const NAME = 'PRS_L2D_STD_20200508102508_20200508102512_0001.he5';
const product = join(folder, NAME);

const [LINES, SAMPLES] = [36, 28];
const GRID = { x: 500_000, y: 5_300_000, pixel: 30, width: SAMPLES, height: LINES, epsg: 32633 };
const NODATA = 65_535;

/** The expected pixels of a band, `index` as stored, long wavelengths first. */
function stored(detector: 'Vnir' | 'Swir', index: number, line: number, sample: number): number {
  const isOutside = line + sample < 6;
  const isUnseen = detector === 'Vnir' && line === 20 && sample === 5;
  if (isOutside || isUnseen) return NODATA;
  if (detector === 'Vnir') {
    if (index === 4 && line === 15 && (sample === 6 || sample === 7)) return NODATA;
    if (index === 4 && line === 16 && sample === 6) return NODATA;
    return 20_000 + 1000 * index + 37 * line + sample;
  }
  // A bad band: its 0 is not a value.
  if (index === 3 && sample >= 4) return NODATA;
  if (index === 5 && line >= 10 && line < 13 && sample >= 8 && sample < 11) return 0;
  return 100 + 2000 * index + 37 * line + sample;
}

/** Stored indexes by ascending wavelength. */
const BANDS = [
  ...[9, 8, 7, 6, 5, 4, 3, 2].map((index) => ({ detector: 'Vnir' as const, index })),
  ...[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0].map((index) => ({ detector: 'Swir' as const, index })),
];

test('wavelengths ascend in each detector, missing bands are left out, each detector has its scale', async () => {
  const [scene, ...others] = await describeScenes(product, {});
  assert.deepEqual(others, []);
  assert.equal(scene!.id, 'PRS_L2D_STD_20200508102508_20200508102512');
  assert.deepEqual([scene!.collection.id, scene!.platform], ['prisma-l2d', 'prisma']);
  assert.equal(new Date(scene!.start).toISOString(), '2020-05-08T10:25:08.537Z');
  assert.equal(new Date(scene!.end).toISOString(), '2020-05-08T10:25:12.852Z');
  const [group, ...more] = scene!.groups;
  assert.deepEqual(more, []);
  assert.deepEqual([group!.name, group!.resampling, group!.nodata], ['30m', 'nearest', NODATA]);
  assert.deepEqual(
    group!.bands.map(({ wavelength }) => wavelength),
    [
      ...[442.5, 492.25, 559.5, 665.1, 740.5, 833.2, 951, 977.5],
      ...[943.3, 1100, 1240, 1380, 1450, 1613.5, 1700, 1850, 1940, 2100, 2202.5, 2490],
    ],
  );
  assert.deepEqual(
    group!.bands.map(({ index, fwhm }) => [index, fwhm]),
    BANDS.map(({ index }) => [index, 9 + index / 8]),
  );
  const [first, , , red] = group!.bands;
  const last = group!.bands.at(-1)!;
  assert.deepEqual([first!.name, first!.scale * NODATA, first!.offset], ['vnir1', 1.5, 0]);
  assert.deepEqual([last.name, last.scale * NODATA, last.offset], ['swir12', 1, -0.25]);
  assert.equal(red!.commonName, 'red');
  assert.deepEqual(
    group!.bands.filter(({ good }) => good === false).map(({ wavelength }) => wavelength),
    [1940],
  );
  assert.match(scene!.warnings.join(), /no cloud mask/);
  const { transform, crs } = group!.bands[0]!.header;
  assert.deepEqual(
    [transform.originX, transform.originY, transform.xx, transform.yy],
    [500_000, 5_300_000, 30, -30],
  );
  assert.equal(crs.epsg, 32633);
});

for (const name of [NAME, 'prisma-chunks.he5'])
  test(`${name}: each pixel of the tiles has the right line and sample`, {
    skip: !hasGdal && 'needs GDAL',
  }, async (t) => {
    const node = await testNode(t, await tempFolder(t));
    const { failed } = await ingest(node, { href: join(folder, name), precision: 5 });
    assert.deepEqual(failed, []);
    const tiles = await tilesOf(node);
    let compared = 0;
    for (const tile of tiles) {
      const places = await sourcePlaces(tile, '30m', GRID);
      const { bands } = await readImage(node.storage.tileImage(tile, '30m'));
      const mask = (await readImage(node.storage.tileImage(tile, 'mask'))).bands[0]!;
      let valid = 0;
      for (const [i, place] of places.entries()) {
        const [line, sample] = [Math.floor(place / SAMPLES), place % SAMPLES];
        const expected = BANDS.map(({ detector, index }) =>
          place < 0 ? NODATA : stored(detector, index, line, sample),
        );
        assert.deepEqual(
          Array.from(bands, (band) => band[i]),
          expected,
          `line ${line}, sample ${sample} in ${tile.id}`,
        );
        const hasData = expected.some((value) => value !== NODATA);
        assert.equal(mask[i] !== 0, hasData, `mask of line ${line}, sample ${sample}`);
        const isComplete = expected.every((value, band) => value !== NODATA || BANDS[band]!.index === 3);
        valid += Number(isComplete);
        compared += Number(place >= 0);
      }
      assert.ok(Math.abs(tile.coverage - (100 * valid) / places.length) < 1e-9);
      assert.equal(tile.cloudCover, null);
    }
    assert.ok(compared > 0.9 * LINES * SAMPLES, `${compared} pixels were compared`);
  });

/** A copy in which a name is replaced by another one of the same length. */
async function patched(to: string, name: string, other: string): Promise<string> {
  const bytes = await readFile(product, 'latin1');
  assert.ok(bytes.includes(name));
  await writeFile(to, bytes.replaceAll(name, other), 'latin1');
  return to;
}

test('incomplete products are refused with the file and the missing part', async (t) => {
  const temp = await tempFolder(t);
  const file = join(temp, 'PRS_L2D_STD_1.he5');
  for (const [name, other, code, message] of [
    ['SWIR_Cube', 'SWIR_Cuba', 'TW_RASTER_NO_LAYER', /SWIR_Cube/],
    [
      'VNIR_PIXEL_L2_ERR_MATRIX',
      'VNIR_PIXEL_L2_ERR_MATRIZ',
      'TW_RASTER_NO_LAYER',
      /VNIR_PIXEL_L2_ERR_MATRIX/,
    ],
    ['L2ScaleVnirMax', 'L2ScaleVnirMaz', 'TW_INGEST_BAD_METADATA', /L2ScaleVnirMax/],
    ['List_Fwhm_Swir', 'List_Fwhm_Swiz', 'TW_INGEST_BAD_METADATA', /List_Fwhm_Swir/],
    ['Epsg_Code', 'Epsg_Coda', 'TW_INGEST_BAD_METADATA', /Epsg_Code/],
    [
      'Product_LRcorner_easting',
      'Product_LRcorner_westing',
      'TW_INGEST_BAD_METADATA',
      /Product_LRcorner_easting/,
    ],
    ['Product_StartTime', 'Product_StartTide', 'TW_INGEST_BAD_METADATA', /Product_StartTime/],
    ['PRS_L2D_HCO', 'PRS_L2C_HCO', 'TW_INGEST_NOT_RECOGNISED', /L2C has no map grid/],
  ] as const) {
    await patched(file, name, other);
    await assert.rejects(describeScenes(file, {}), (error: { code: string; message: string }) => {
      assert.equal(error.code, code, `${name}: ${error.message}`);
      assert.match(error.message, message);
      assert.ok(error.message.includes(file), error.message);
      return true;
    });
  }
  await assert.rejects(describeScenes(join(folder, 'prisma-turned.he5'), {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /latitudes do not fall/,
  });
  // Stored pixel by pixel, with as many bands as there are samples.
  await assert.rejects(describeScenes(join(folder, 'prisma-pixels.he5'), {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /List_Cw_Vnir and List_Fwhm_Vnir have 10 and 10 bands, and the cube has 28/,
  });
  const cut = join(temp, 'cut.he5');
  await copyFile(product, cut);
  await writeFile(cut, (await readFile(cut)).subarray(0, 60_000));
  await assert.rejects(describeScenes(cut, {}), { code: 'TW_RASTER_CORRUPT' });
});
