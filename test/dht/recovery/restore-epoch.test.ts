/** The number of a restoration, which versions begin with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  epochOf,
  noteRestoration,
  readRestored,
  restoredPut,
} from '../../../src/dht/recovery/restore-epoch.js';
import { sharedPlace } from '../shared-stores.js';

test('the epoch is the number of the restoration, also where an earlier version did not record it', async (t) => {
  const { coordination, objects } = await sharedPlace(t);
  const epoch = async () => epochOf(await readRestored(coordination), objects);
  assert.equal(await epoch(), 0);
  await noteRestoration(objects, 'one');
  const restored = await noteRestoration(objects, 'two');
  await coordination.transact({ success: [restoredPut(restored)] });
  assert.equal(await epoch(), 2);
  const value = JSON.stringify({ id: restored.id });
  await coordination.transact({ success: [{ ...restoredPut(restored), value }] });
  assert.equal(await epoch(), 2);
});
