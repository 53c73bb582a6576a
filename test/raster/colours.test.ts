import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeCog, openRaster } from '../../src/raster/index.js';
import { temporaryFolder } from './gdal.js';
import { image, setShort } from './images.js';

const PHOTOMETRIC = 262;

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
