/** Who writes, and who deletes, on different nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COLLECTION, cellsOf, writeScene } from '../storage/sample-scenes.js';
import { startMember } from './members.js';
import { sharedPlace } from './shared-place.js';

test('a collection is not deleted while another node writes a scene of it, and gets none while it is', async (t) => {
  const where = await sharedPlace(t);
  const a = await startMember(where, 'a');
  const b = await startMember(where, 'b');
  const { id } = COLLECTION;
  await writeScene(a.storage, 's1', 1);

  const write = await a.storage.beginScene(COLLECTION, 's2', cellsOf(2));
  await assert.rejects(b.storage.deleteCollection(id), { code: 'TW_STORAGE_SCENE_BUSY' });
  await write.abort();

  // A deletion that ends before it has deleted anything.
  const claim = await b.cluster.claims.collection(id);
  await assert.rejects(writeScene(a.storage, 's2', 2), { code: 'TW_STORAGE_COLLECTION_BUSY' });
  await assert.rejects(
    a.storage.amendCollection(id, (record) => ({ ...record, title: 'changed' })),
    {
      code: 'TW_STORAGE_COLLECTION_BUSY',
    },
  );
  await claim.release();
  await writeScene(a.storage, 's2', 2);
  await a.storage.amendCollection(id, (record) => ({ ...record, title: 'changed' }));

  assert.equal(await b.storage.deleteCollection(id), cellsOf(1).length + cellsOf(2).length);
  await a.cluster.replica.catchUp();
  assert.equal(await a.storage.getCollection(id), undefined);
  assert.equal(a.storage.index.size, 0);
  await writeScene(a.storage, 's3', 3);
  await b.cluster.replica.catchUp();
  assert.ok(await b.storage.getScene(id, 's3'));
});
