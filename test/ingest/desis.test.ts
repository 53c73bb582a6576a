/** DESIS products that GDAL wrote by the product specification: no real one is small enough to be here. */
import assert from 'node:assert/strict';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { Mask, readImage } from '../../src/raster/index.js';
import { gdalPython, needsPythonGdal } from '../raster/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { sourcePlaces } from './source-places.js';

const NAME = 'DESIS-HSI-L2A-DT1203190212_025-20191203T021128-V0210';
const [ROWS, COLUMNS, COUNT] = [40, 33, 24];
const GRID = { x: 500_000, y: 5_300_000, pixel: 30, width: COLUMNS, height: ROWS, epsg: 32633 };
const NODATA = -32768;

const pixel = (band: number, row: number, column: number) =>
  row + column < 6 ? NODATA : 200 * band + 40 * row + column - 500;

/** The bands of a pixel lie side by side and compressed, as delivered. */
const WRITE = `
import sys
import numpy as np
from osgeo import gdal, osr
gdal.UseExceptions()
folder, rows, columns, count = sys.argv[1], *map(int, sys.argv[2:])
system = osr.SpatialReference()
system.ImportFromEPSG(32633)

def write(ending, values, kind, nodata=None):
    options = ['INTERLEAVE=PIXEL', 'COMPRESS=LZW']
    raster = gdal.GetDriverByName('GTiff').Create(folder + ending, columns, rows, len(values), kind, options)
    raster.SetGeoTransform([500000, 30, 0, 5300000, 0, -30])
    raster.SetProjection(system.ExportToWkt())
    for i, band in enumerate(values):
        raster.GetRasterBand(i + 1).WriteArray(band)
        if nodata is not None:
            raster.GetRasterBand(i + 1).SetNoDataValue(nodata)

r, c = np.meshgrid(np.arange(rows), np.arange(columns), indexing='ij')
cube = [np.where(r + c < 6, -32768, 200 * b + 40 * r + c - 500).astype('i2') for b in range(count)]
write('SPECTRAL_IMAGE.tif', cube, gdal.GDT_Int16, -32768)
shadow, snow, haze, cloud_land, cloud_water = c < 5, (c >= 4) & (c < 9), (c >= 9) & (c < 12), (r >= 30) & (c < 20), r < 8
land = c < 25
flags = [shadow, land, snow, haze, haze, cloud_land, cloud_water, ~land, 12 + 0 * r, 80 + 0 * r]
write('QL_QUALITY-2.tif', [flag.astype('u1') for flag in flags], gdal.GDT_Byte)
`;

const metadata = (count = COUNT) => `<?xml version="1.0" encoding="UTF-8"?>
<hsi_doc>
 <metadata><schema><processingLevel>3</processingLevel></schema></metadata>
 <base><temporalCoverage><startTime>2019-12-03T02:11:28.193021Z</startTime><endTime>2019-12-03T02:11:32.5Z</endTime></temporalCoverage></base>
 <specific>
  <interiorOrientation><band><bandNumber>1</bandNumber><focalLength>320</focalLength></band></interiorOrientation>
  <bandCharacterisation>${Array.from(
    { length: count },
    (_, i) =>
      `<band><bandNumber>${i + 1}</bandNumber><wavelengthCenterOfBand>${401.75 + 25.5 * i}</wavelengthCenterOfBand><wavelengthWidthOfBand>${3.5 + i / 16}</wavelengthWidthOfBand><gainOfBand>0.0001</gainOfBand><offsetOfBand>${i === 3 ? 0.25 : 0}</offsetOfBand></band>`,
  ).join('')}</bandCharacterisation>
 </specific>
</hsi_doc>`;

async function product(folder: string): Promise<string> {
  const path = join(folder, NAME);
  await mkdir(path);
  const stem = join(path, `${NAME}-`);
  gdalPython('-c', WRITE, stem, String(ROWS), String(COLUMNS), String(COUNT));
  await writeFile(`${stem}METADATA.xml`, metadata());
  // Others of the product, which say nothing that is not in the metadata.
  await writeFile(`${stem}SPECTRAL_IMAGE.hdr`, 'ENVI\nbands = 24\n');
  await writeFile(`${stem}HISTORY.xml`, '<history/>');
  return path;
}

/** The first that says something counts: cloud, shadow, snow, then land and water. */
function maskCode(row: number, column: number): number {
  if (row + column < 6) return Mask.nodata;
  if ((row >= 30 && column < 20) || row < 8) return Mask.cloud;
  return column < 5 ? Mask.shadow : column < 9 ? Mask.snow : Mask.clear;
}

test('a product: wavelengths, scales, time', needsPythonGdal, async (t) => {
  const path = await product(await tempFolder(t));
  const [scene, ...others] = await describeScenes(path, {});
  assert.deepEqual(others, []);
  assert.equal(scene!.id, 'DESIS-HSI-L2A-DT1203190212_025-20191203T021128');
  assert.deepEqual([scene!.collection.id, scene!.platform], ['desis-l2a', 'iss']);
  assert.equal(new Date(scene!.start).toISOString(), '2019-12-03T02:11:28.193Z');
  assert.equal(new Date(scene!.end).toISOString(), '2019-12-03T02:11:32.500Z');
  assert.deepEqual(
    scene!.groups.map(({ name, role, resampling, nodata, bands }) => [
      name,
      role,
      resampling,
      nodata,
      bands.length,
    ]),
    [
      ['30m', 'data', 'nearest', NODATA, COUNT],
      ['30m-qa', 'qa', 'nearest', null, 8],
    ],
  );
  const { bands } = scene!.groups[0]!;
  assert.deepEqual(
    [bands[0], bands[3], bands[23]].map((band) => [band!.wavelength, band!.fwhm, band!.scale, band!.offset]),
    [
      [401.75, 3.5, 0.0001, 0],
      [478.25, 3.6875, 0.0001, 0.25],
      [988.25, 4.9375, 0.0001, 0],
    ],
  );
  assert.equal(bands.find(({ commonName }) => commonName === 'red')!.wavelength, 656.75);
  assert.deepEqual(scene!.warnings, []);
  const [same] = await describeScenes(join(path, `${NAME}-METADATA.xml`), {});
  assert.deepEqual(same!.groups, scene!.groups);
});

test(
  'each pixel of the tiles is in the right position, and flags become the mask',
  needsPythonGdal,
  async (t) => {
    const folder = await tempFolder(t);
    const node = await testNode(t, join(folder, 'data'));
    const { failed } = await ingest(node, { href: await product(folder), precision: 5 });
    assert.deepEqual(failed, []);
    let compared = 0;
    const seen = new Set<number>();
    for (const tile of await tilesOf(node)) {
      const places = await sourcePlaces(tile, '30m', GRID);
      const { bands } = await readImage(node.storage.tileImage(tile, '30m'));
      const mask = (await readImage(node.storage.tileImage(tile, 'mask'))).bands[0]!;
      for (const [i, place] of places.entries()) {
        const [row, column] = [Math.floor(place / COLUMNS), place % COLUMNS];
        assert.deepEqual(
          Array.from(bands, (band) => band[i]),
          Array.from({ length: COUNT }, (_, band) => (place < 0 ? NODATA : pixel(band, row, column))),
          `row ${row}, column ${column}`,
        );
        assert.equal(
          mask[i],
          place < 0 ? Mask.nodata : maskCode(row, column),
          `mask of row ${row}, column ${column}`,
        );
        seen.add(mask[i]!);
        compared += Number(place >= 0);
      }
    }
    assert.ok(compared > 0.9 * ROWS * COLUMNS, `${compared} pixels were compared`);
    assert.deepEqual([...seen].sort(), [Mask.nodata, Mask.clear, Mask.cloud, Mask.shadow, Mask.snow]);
  },
);

test('damaged products are refused, and one without flags has a warning', needsPythonGdal, async (t) => {
  const path = await product(await tempFolder(t));
  const file = (ending: string) => join(path, `${NAME}-${ending}`);
  const xml = file('METADATA.xml');
  const refused = (message: RegExp, code = 'TW_INGEST_BAD_METADATA') =>
    assert.rejects(describeScenes(path, {}), { code, message });
  await writeFile(xml, metadata(20));
  await refused(/METADATA\.xml.*lists 20 bands, and the cube has 24/);
  for (const name of ['wavelengthCenterOfBand', 'gainOfBand', 'offsetOfBand']) {
    await writeFile(xml, metadata().replace(new RegExp(`(<bandNumber>3<.*?)<${name}>[^<]*</${name}>`), '$1'));
    await refused(new RegExp(`METADATA\\.xml.*band 3 has no ${name}`));
  }
  await writeFile(xml, metadata().replace(/<startTime>[^<]*/, '<startTime>'));
  await refused(/startTime/);
  await writeFile(xml, metadata());
  await rename(file('QL_QUALITY-2.tif'), file('QL_QUALITY-2.old'));
  const [scene] = await describeScenes(path, {});
  assert.deepEqual([scene!.groups.length, scene!.quality], [1, []]);
  assert.match(scene!.warnings.join(), /QL_QUALITY-2\.tif/);
  await rm(file('SPECTRAL_IMAGE.tif'));
  await refused(/SPECTRAL_IMAGE/, 'TW_INGEST_MISSING_BAND');
});
