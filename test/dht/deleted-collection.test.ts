/** A collection is deleted while another node puts records of it: nothing of the collection remains. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TextureRecord } from '../../src/storage/index.js';
import { hooked } from '../coordination/faulty-stores.js';
import { COLLECTION, cellsOf, writeScene } from '../storage/sample-scenes.js';
import { type RunningMember, startMember } from './cluster-members.js';
import { sharedStores } from './shared-stores.js';

const [CELL] = cellsOf(1) as [string];
const TILE = `${COLLECTION.id}_s_g${CELL}`;

const isSegment = (name: string) => name.startsWith('catalogue/segments/');

/** Resolves when it is opened. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

async function assertNothingLeft({ storage, cluster }: RunningMember): Promise<void> {
  await cluster.replica.catchUp();
  for (const table of ['collections', 'scenes', 'textures'] as const) {
    const keys: string[] = [];
    for await (const key of storage.catalogue[table].keys()) keys.push(key);
    assert.deepEqual(keys, [], table);
  }
}

test('textures that are committed after the deletion are left out', async (t) => {
  const where = await sharedStores(t);
  let isDue = false;
  const objects = hooked(where.objects, 'put', async (name) => {
    if (!isDue || !isSegment(name)) return;
    isDue = false;
    await b.storage.deleteCollection(COLLECTION.id);
  });
  const a = await startMember({ ...where, objects }, 'a');
  const b = await startMember(where, 'b');
  await writeScene(a.storage, 's', 1);
  const texture: TextureRecord = {
    collection: COLLECTION.id,
    grid: 'geohash',
    geocode: CELL,
    tile: TILE,
    version: '1',
    start: 0,
    values: [],
  };
  isDue = true;
  await a.storage.textures.put([texture]);
  assert.ok(!isDue);
  await assertNothingLeft(b);
});

test('a tile is deleted under a lock that was acquired at the same time as the lock of the deletion', async (t) => {
  const where = await sharedStores(t);
  const [built, deleted] = [gate(), gate()];
  let isDue = false;
  let outcome: Promise<unknown> | undefined;
  // The deletion has found no locks on scenes, and acquires its own.
  const coordination = hooked(where.coordination, 'grantLease', async () => {
    if (!isDue || outcome) return;
    outcome = a.storage.deleteTile(TILE).then(
      () => undefined,
      (error) => error.code,
    );
    await built.opened;
  });
  const objects = hooked(where.objects, 'put', async (name) => {
    if (!isDue || !isSegment(name)) return;
    isDue = false;
    built.open();
    await deleted.opened;
  });
  const a = await startMember({ ...where, objects }, 'a');
  const b = await startMember({ ...where, coordination }, 'b');
  assert.ok(cellsOf(1).length > 1, 'the scene keeps a record');
  await writeScene(a.storage, 's', 1);
  isDue = true;
  await b.storage.deleteCollection(COLLECTION.id);
  deleted.open();
  assert.equal(await outcome, 'TW_STORAGE_NO_TILE');
  await assertNothingLeft(b);
});
