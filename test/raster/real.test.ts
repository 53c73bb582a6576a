import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { openRaster, readRaster } from '../../src/raster/index.js';
import { gdal, gdalPixels, needsGdal, repository } from './gdal.js';
import { assertSamePixels } from './images.js';

const folder = join(repository, '../shared/data');
const files = existsSync(folder)
  ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
  : [];
const skip = files.length > 0 ? false : 'the folder of real scenes is not there';

test('real GeoTIFFs agree with GDAL', { skip: skip || needsGdal.skip }, async () => {
  const scenes = files.filter((path) => /\.tiff?$/i.test(path) || /s2_B\d\w\.jp2$/.test(path));
  assert.ok(scenes.length > 50);
  // The last two of each folder will do.
  const chosen = scenes.filter((path, i) => dirname(path) !== dirname(scenes[i + 2] ?? ''));
  for (const path of chosen.filter((path) => !path.includes('series') || path.includes('20180710'))) {
    const name = relative(folder, path);
    const { header, bands } = await readRaster(path);
    const info = JSON.parse(gdal('gdalinfo', '-json', path));
    const { originX, xx, xy, originY, yx, yy } = header.transform;
    for (const [i, value] of [originX, xx, xy, originY, yx, yy].entries()) {
      assert.ok(Math.abs(value - info.geoTransform[i]) < 1e-6, `${name}: ${info.geoTransform}`);
    }
    const epsg = /ID\["EPSG",(\d+)\]\]$/.exec(info.coordinateSystem.wkt)?.[1];
    if (header.crs.epsg !== undefined) assert.equal(String(header.crs.epsg), epsg, name);
    assert.equal(header.nodata, info.bands[0].noDataValue, name);
    for (const [i, wanted] of gdalPixels(path, header.dataType).entries())
      assertSamePixels(bands[i]!, wanted);
  }
});

test('real files of other formats are refused by name', { skip }, async () => {
  for (const [ending, words] of [
    ['MTL.txt', /format is not known/],
    ['.npz', /zip/],
  ] as const) {
    const path = files.filter((name) => name.endsWith(ending) && !name.includes('s2_B')).at(-1);
    assert.ok(path, ending);
    await assert.rejects(openRaster(path), { code: 'TW_RASTER_NOT_TIFF', message: words });
  }
});
