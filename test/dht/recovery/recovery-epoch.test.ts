/** The number of a restore, with which versions begin. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { epochNumber, epochPut, readEpoch, startEpoch } from '../../../src/dht/recovery.js';
import { sharedStores } from '../shared-stores.js';

test('the epoch is the number of the restore, even if an earlier version did not record it', async (t) => {
  const { coordination, objects } = await sharedStores(t);
  const epoch = async () => epochNumber(await readEpoch(coordination), objects);
  assert.equal(await epoch(), 0);
  await startEpoch(objects, 'one');
  const restored = await startEpoch(objects, 'two');
  await coordination.transact({ success: [epochPut(restored)] });
  assert.equal(await epoch(), 2);
  const value = JSON.stringify({ id: restored.id });
  await coordination.transact({ success: [{ ...epochPut(restored), value }] });
  assert.equal(await epoch(), 2);
});
