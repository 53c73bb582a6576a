/** Kelvin-1: the example of docs/tutorials/add-a-product.md. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeInput } from '../../../src/ingest/formats/probe.js';
import { writeRaster } from '../../support/rasters.js';
import { tempFolder } from '../../support/temp.js';
import { kelvin } from './kelvin.js';

test('a Kelvin-1 map: bands, time, clouds', async (t) => {
  const folder = await tempFolder(t);
  const bands = [new Uint16Array(4096).fill(29_315), new Uint16Array(4096).fill(1)];
  const metadata = { MISSION: 'KELVIN-1', ORBIT: '77', SENSED: '2025-07-01T10:00:00Z' };
  const path = await writeRaster(join(folder, 'any name.tif'), { bands, metadata });
  const candidate = await probeInput(path);
  assert.equal(await kelvin.identify(candidate), true);
  const [scene] = await kelvin.describe(candidate, {});
  assert.equal(scene.id, 'K1_77_2025-07-01');
  assert.deepEqual(
    scene.groups.map(({ name, nodata }) => [name, nodata]),
    [
      ['10m', 0],
      ['10m-qa', null],
    ],
  );
  assert.deepEqual([...scene.quality[0].codes.subarray(0, 4)], [1, 2, 3, 2]);
});

test('other files are not Kelvin-1, and one without its time is broken', async (t) => {
  const folder = await tempFolder(t);
  const other = await writeRaster(join(folder, 'KELVIN-1.tif'));
  assert.equal(await kelvin.identify(await probeInput(other)), false);
  const broken = await writeRaster(join(folder, 'broken.tif'), { metadata: { MISSION: 'KELVIN-1' } });
  await assert.rejects(kelvin.describe(await probeInput(broken), {}), { code: 'TW_INGEST_NO_DATETIME' });
});
