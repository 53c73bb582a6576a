/** Writes and deletions on different nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSchema, updateSchema } from '../../../src/dht/log/committer.js';
import { collectionNotFound } from '../../../src/storage/errors.js';
import { faultyObjects } from '../../coordination/faulty-stores.js';
import { COLLECTION, cellsOf, writeScene } from '../../storage/sample-scenes.js';
import { type RunningMember, startMember, until } from '../cluster-members.js';
import { sharedStores } from '../shared-stores.js';

test('a collection is not deleted while another node writes a scene of it, and gets no scene while it is deleted', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  const b = await startMember(where, 'b');
  const { id } = COLLECTION;
  await writeScene(a.storage, 's1', 1);

  const write = await a.storage.beginScene(COLLECTION, 's2', cellsOf(2));
  await assert.rejects(b.storage.collections.delete(id), { code: 'TW_STORAGE_SCENE_BUSY' });
  await write.abort();

  // A deletion that ends before it has deleted anything.
  const claim = await b.cluster.locks.lockCollection(id);
  await assert.rejects(writeScene(a.storage, 's2', 2), { code: 'TW_STORAGE_COLLECTION_BUSY' });
  await assert.rejects(
    a.storage.collections.update(id, (record) => ({ ...record, title: 'changed' })),
    {
      code: 'TW_STORAGE_COLLECTION_BUSY',
    },
  );
  await claim.release();
  await writeScene(a.storage, 's2', 2);
  await a.storage.collections.update(id, (record) => ({ ...record, title: 'changed' }));

  assert.equal(await b.storage.collections.delete(id), cellsOf(1).length + cellsOf(2).length);
  await a.cluster.replica.catchUp();
  assert.equal(await a.storage.catalogue.collections.get(id), undefined);
  assert.equal(a.storage.index.size, 0);
  await writeScene(a.storage, 's3', 3);
  await b.cluster.replica.catchUp();
  assert.ok(await b.storage.getScene(id, 's3'));
});

test('the scenes of a lost node can be written by others immediately, and no longer by that node', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  const b = await startMember(where, 'b');
  await writeScene(a.storage, 's1', 1);
  const claim = await a.cluster.locks.lockScene(COLLECTION.id, 's2');
  await assert.rejects(writeScene(b.storage, 's2', 2), { code: 'TW_DHT_CLAIMED' });
  await b.cluster.revokeLocksOf('a');
  await writeScene(b.storage, 's2', 2);
  const late = claim.commit(async () => ({
    removed: [],
    edits: [{ table: 'scenes', key: 'x', record: null }],
  }));
  await assert.rejects(late, { code: 'TW_DHT_CLAIM_LOST' });
});

test('a first ingest that failed does not fix the cells of its collection', async (t) => {
  const where = await sharedStores(t);
  const faults = (name: string) =>
    name.startsWith('catalogue/segments/') ? { kind: 'failed' as const, outage: 0 } : undefined;
  const a = await startMember({ ...where, objects: faultyObjects(where.objects, faults) }, 'a');
  const b = await startMember(where, 'b');
  await assert.rejects(writeScene(a.storage, 's1', 1), { code: 'TW_STORE_UNAVAILABLE' });
  assert.equal(await readSchema(where.coordination, COLLECTION.id), undefined);
  // A key without a record, as a killed writer leaves it.
  await updateSchema(
    where.coordination,
    { id: COLLECTION.id, revision: 0 },
    { grid: 'geohash', precision: 5 },
  );
  await commitEmptyScene(b, { ...COLLECTION, precision: 6 });
  assert.equal((await b.storage.catalogue.collections.get(COLLECTION.id))?.precision, 6);
  await assert.rejects(commitEmptyScene(b, COLLECTION), { code: 'TW_STORAGE_COLLECTION_FIXED' });
});

async function commitEmptyScene({ storage }: RunningMember, collection: typeof COLLECTION): Promise<void> {
  const write = await storage.beginScene(collection, 'empty', []);
  try {
    await write.commit({ fingerprint: '', start: 0, end: 0, platform: null, warnings: [] }, []);
  } finally {
    await write.abort();
  }
}

test('of nodes that create a collection at the same time with different grids, one wins and the others are refused', async (t) => {
  const where = await sharedStores(t);
  const nodes = await Promise.all(['a', 'b', 'c'].map((id) => startMember(where, id)));
  const results = await Promise.allSettled(
    nodes.map(async ({ storage }, i) => {
      const write = await storage.beginScene({ ...COLLECTION, precision: 4 + i }, `s${i}`, []);
      const facts = { fingerprint: '', start: 0, end: 0, platform: null, warnings: [] };
      await write.commit(facts, []).finally(() => write.abort());
    }),
  );
  const refused = results.filter((result) => result.status === 'rejected');
  assert.equal(refused.length, 2);
  for (const { reason } of refused) assert.equal(reason.code, 'TW_STORAGE_COLLECTION_FIXED');
});

test('a commit that was built from a collection which is then deleted fails', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  const b = await startMember(where, 'b');
  await writeScene(a.storage, 'scene-0', 1);
  await b.cluster.replica.catchUp();
  const { id } = COLLECTION;
  for (const name of ['shared', 'scene'] as const) {
    const claim = await (name === 'shared'
      ? b.cluster.locks.lockShared()
      : b.cluster.locks.lockScene(id, 's'));
    const tile = { ...(await b.storage.getTiles([`${id}_scene-0_g${cellsOf(1)[0]}`]))[0]!, id: `${id}_x` };
    let builds = 0;
    const commit = claim.commit(async () => {
      if (!(await b.storage.catalogue.collections.get(id))) throw collectionNotFound(id);
      if (++builds === (name === 'shared' ? 2 : 1)) {
        await (name === 'scene' ? b.cluster.revokeLocksOf('b') : undefined);
        await a.storage.collections.delete(id);
      }
      return { added: [tile] };
    });
    await assert.rejects(commit, {
      code: name === 'shared' ? 'TW_STORAGE_NO_COLLECTION' : 'TW_DHT_CLAIM_LOST',
    });
    await claim.release();
    await writeScene(a.storage, 'scene-0', 1);
    await b.cluster.replica.catchUp();
    assert.equal(b.storage.index.has(tile.id), false);
  }
});

test('the log reports nodes that join and leave, and how many slots a node owns', async (t) => {
  const where = await sharedStores(t);
  const messages: string[] = [];
  const a = await startMember(where, 'a', { onStatus: (text) => messages.push(text) });
  const b = await startMember(where, 'b');
  await until('b has joined', () => messages.includes('node b at http://b has joined'));
  await b.stop();
  await until('b has left', () => messages.includes('node b at http://b has left'));
  await until('its slots are reported', () => messages.includes('this node owns 16384 of 16384 slots'));
  assert.deepEqual(a.failures, []);
});
