import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { computeFingerprint } from '../../src/ingest/scene-tiles.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

test('a fingerprint distinguishes everything that affects tiles, even numbers that JSON lacks', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'a.tif'), {
    dataType: 'float32',
    bands: [Float32Array.from({ length: 64 * 64 }, (_, i) => i)],
  });
  const of = async (file: string, options: object, precision = 5) => {
    const flags = { collection: 'c', datetime: '2024-06-01', id: 'a', ...options };
    const [scene] = await describeScenes(file, flags);
    return computeFingerprint(scene, { grid: 'geohash', precision, test: null }, new Map());
  };
  const plain = await of(path, {});
  const others = await Promise.all([
    ...[NaN, Infinity, -Infinity, 0].map((nodata) => of(path, { nodata })),
    of(path, { scale: 2 }),
    of(path, { bands: { red: 1 } }),
    of(path, {}, 6),
  ]);
  assert.equal(new Set([plain, ...others]).size, others.length + 1);

  const copy = join(folder, 'b.tif');
  await copyFile(path, copy);
  assert.equal(await of(copy, {}), plain, 'a copy is the same scene');
  assert.equal(await of(copy, { nodata: NaN }), others[0]);
});
