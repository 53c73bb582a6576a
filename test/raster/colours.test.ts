import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeCog, openRaster, readRaster } from '../../src/raster/index.js';
import { gdal, gdalPixels, needsGdal, temporaryFolder } from './gdal.js';
import { image, setShort } from './images.js';

const PHOTOMETRIC = 262;

/** Photometric interpretation, bands, other options. */
const JPEGS: [photometric: string, bands: number, options: string[]][] = [
  ['YCBCR', 3, ['TILED=YES', 'BLOCKXSIZE=64', 'BLOCKYSIZE=64']],
  ['YCBCR', 3, []],
  ['RGB', 3, ['TILED=YES', 'BLOCKXSIZE=128', 'BLOCKYSIZE=64']],
  ['RGB', 4, ['TILED=YES']],
  ['MINISBLACK', 1, []],
  ['MINISBLACK', 2, ['TILED=YES']],
  ['MINISBLACK', 5, ['INTERLEAVE=BAND']],
];

test('JPEG is decoded as by GDAL, even with colours of half the resolution', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  for (const [i, [photometric, bands, options]] of JPEGS.entries()) {
    const [source, path] = [join(folder, `${i}.source.tif`), join(folder, `${i}.tif`)];
    writeFileSync(source, encodeCog(image('uint8', 203, 147, bands)));
    const all = [`PHOTOMETRIC=${photometric}`, 'COMPRESS=JPEG', ...options].flatMap((option) => [
      '-co',
      option,
    ]);
    gdal('gdal_translate', '-q', ...all, source, path);
    const { bands: found } = await readRaster(path);
    for (const [band, pixels] of gdalPixels(path, 'uint8').entries())
      assert.deepEqual(found[band], pixels, `${photometric} ${bands} ${options}: band ${band}`);
  }
});

for (const [photometric, model] of [
  [5, 'CMYK'],
  [8, 'CIELab'],
  [6, 'YCbCr'],
] as const)
  test(`colours stored as ${model} are refused`, async (t) => {
    const path = join(temporaryFolder(t), 'scene.tif');
    const bytes = encodeCog(image('uint8', 40, 30, 4, {}));
    setShort(bytes, PHOTOMETRIC, photometric);
    writeFileSync(path, bytes);
    await assert.rejects(openRaster(path), (error: Error) => {
      assert.match(error.message, new RegExp(`colours are stored as ${model}`));
      return true;
    });
  });
