import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeCog, openRaster, readRaster } from '../../src/raster/index.js';
import { temporaryFolder } from './gdal.js';
import { image, setShort } from './images.js';

const PREDICTOR = 317;

test('the predictor of floating point numbers is refused for integers', async (t) => {
  const path = join(temporaryFolder(t), 'scene.tif');
  const bytes = encodeCog(image('uint16', 40, 30, 1, {}));
  setShort(bytes, PREDICTOR, 3);
  writeFileSync(path, bytes);
  assert.equal((await openRaster(path)).dataType, 'uint16');
  await assert.rejects(readRaster(path), { code: 'TW_RASTER_UNSUPPORTED' });
});
