/** Who writes, and who deletes, on different nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COLLECTION, cellsOf, writeScene } from '../storage/sample-scenes.js';
import { startMember, until } from './members.js';
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

test('what a lost node was writing can be written by others at once, and by it no more', async (t) => {
  const where = await sharedPlace(t);
  const a = await startMember(where, 'a');
  const b = await startMember(where, 'b');
  await writeScene(a.storage, 's1', 1);
  const claim = await a.cluster.claims.scene(COLLECTION.id, 's2');
  await assert.rejects(writeScene(b.storage, 's2', 2), { code: 'TW_DHT_CLAIMED' });
  await b.cluster.endClaimsOf('a');
  await writeScene(b.storage, 's2', 2);
  const late = claim.commit(async () => ({
    removed: [],
    edits: [{ table: 'scenes', key: 'x', record: null }],
  }));
  await assert.rejects(late, { code: 'TW_DHT_CLAIM_LOST' });
});

test('an operator is told who comes and goes, and how many slots a node owns', async (t) => {
  const where = await sharedPlace(t);
  const news: string[] = [];
  const a = await startMember(where, 'a', { onNews: (text) => news.push(text) });
  const b = await startMember(where, 'b');
  await until('b is here', () => news.includes('node b at http://b is here'));
  await b.stop();
  await until('b is away', () => news.includes('node b at http://b is away'));
  await until('its slots are told', () => news.at(-1) === 'this node owns 16384 of 16384 slots');
  assert.deepEqual(a.failures, []);
});
