/** A collection is deleted while another node puts records of it: nothing of the collection remains. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { toArray } from '../../src/async/index.js';
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

/** The textures of all tiles that a node knows. */
async function texturesOf({ storage }: RunningMember): Promise<TextureRecord[]> {
  const tiles = await toArray(storage.catalogue.tiles.values());
  return tiles.map(({ collection, grid, geocode, id: tile, version, start }) => ({
    ...{ collection, grid, geocode, tile, version, start, values: [] },
  }));
}

/** Two nodes with one scene. While `a` writes the segment of the commit of `first`, `b` does `second`. */
async function interleave(
  t: TestContext,
  first: (a: RunningMember) => Promise<unknown>,
  second: (b: RunningMember) => Promise<unknown>,
): Promise<RunningMember> {
  const where = await sharedStores(t);
  let isDue = false;
  const objects = hooked(where.objects, 'put', async (name) => {
    if (!isDue || !isSegment(name)) return;
    isDue = false;
    await second(b);
  });
  const a = await startMember({ ...where, objects }, 'a');
  const b = await startMember(where, 'b');
  await writeScene(a.storage, 's', 1);
  await b.cluster.replica.catchUp();
  isDue = true;
  await first(a);
  assert.ok(!isDue);
  return b;
}

test('textures that are committed after the deletion are left out', async (t) => {
  const b = await interleave(
    t,
    async (a) => assert.equal(await a.storage.textures.put(await texturesOf(a)), 0),
    ({ storage }) => storage.collections.delete(COLLECTION.id),
  );
  await assertNothingLeft(b);
});

test('a texture is left out if another node deletes its tile before the commit', async (t) => {
  const b = await interleave(
    t,
    async (a) => {
      const textures = await texturesOf(a);
      assert.equal(await a.storage.textures.put(textures), textures.length - 1);
    },
    ({ storage }) => storage.collections.deleteTile(TILE),
  );
  await b.cluster.replica.catchUp();
  const left = (await toArray(b.storage.textures.list(COLLECTION.id))).map(({ tile }) => tile);
  assert.ok(left.length > 0 && !left.includes(TILE), left.join());
});

test('a deletion also deletes the textures that another node stores before its commit', async (t) => {
  const b = await interleave(
    t,
    ({ storage }) => storage.collections.deleteScene(COLLECTION.id, 's'),
    async (b) => assert.ok((await b.storage.textures.put(await texturesOf(b))) > 0),
  );
  await b.cluster.replica.catchUp();
  assert.deepEqual(await toArray(b.storage.textures.list(COLLECTION.id)), []);
});

test('a tile is deleted under a lock that was acquired at the same time as the lock of the deletion', async (t) => {
  const where = await sharedStores(t);
  const [built, deleted] = [gate(), gate()];
  let isDue = false;
  let outcome: Promise<unknown> | undefined;
  // The deletion has found no locks on scenes, and acquires its own.
  const coordination = hooked(where.coordination, 'grantLease', async () => {
    if (!isDue || outcome) return;
    outcome = a.storage.collections.deleteTile(TILE).then(
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
  await b.storage.collections.delete(COLLECTION.id);
  deleted.open();
  assert.equal(await outcome, 'TW_STORAGE_NO_TILE');
  await assertNothingLeft(b);
});
