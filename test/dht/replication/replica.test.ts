/** Several nodes in one process, with their own folders, one tile store and one coordination store. */
import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, ScatterGather } from '../../../src/dht/index.js';
import { writeLogCheckpoint } from '../../../src/dht/log/checkpoint.js';
import { ClusterLockManager } from '../../../src/dht/log/locks.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { Replica } from '../../../src/dht/replica.js';
import { DEFAULT_PREFIX_LENGTHS as prefixLengths, SLOTS, SlotSet, slotOf } from '../../../src/dht/slots.js';
import { type Commit, Storage, type TileRecord } from '../../../src/storage/index.js';
import { bytesOf, COLLECTION, cellsOf, writeScene } from '../../storage/sample-scenes.js';
import { type SharedStores, sharedStores } from '../shared-stores.js';

interface Node {
  storage: Storage;
  replica: Replica;
  locks: ClusterLockManager;
  close(): Promise<void>;
}

async function startNode(
  { folder, objects, coordination, stops }: SharedStores,
  id: string,
  onReplicate: (commit: Commit) => void = () => {},
  epochId?: string,
): Promise<Node> {
  const dir = join(folder, id);
  const storage = await Storage.open(dir, { reserve: 0 });
  const replicate = storage.replicate.bind(storage);
  storage.replicate = (state, commit, applied) => {
    onReplicate(commit);
    return replicate(state, commit, applied);
  };
  const log = new CommitLog(coordination);
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const shared = { storage, objects, log, prefixLengths };
  const replica = await Replica.open({ ...shared, cluster: 'c', onFailure, ...(epochId && { epochId }) });
  const locks = new ClusterLockManager({ ...shared, coordination, replica, ownerLabel: id });
  storage.enterCluster(locks, objects, onFailure);
  replica.start();
  let isOpen = true;
  const close = async () => {
    if (!isOpen) return;
    isOpen = false;
    await replica.close();
    await storage.close();
    assert.deepEqual(failures, []);
  };
  stops.push(close);
  return { storage, replica, locks, close };
}

/** Writes scenes through a node, and remembers the delivery of each. */
function writerOf({ storage }: Node) {
  const scenes = new Map<string, number>();
  const write = async (scene: string, n: number) => {
    await writeScene(storage, scene, n);
    scenes.set(scene, n);
  };
  return { scenes, write };
}

const slotOfTile = ({ grid, geocode }: Pick<TileRecord, 'grid' | 'geocode'>) =>
  slotOf(grid, geocode, prefixLengths[grid]);
const everySlot = Array.from({ length: SLOTS }, (_, slot) => slot);

/** Every node has the tiles of its slots of these deliveries, and all scenes; every file is in the store. */
async function assertHolds(
  { objects }: SharedStores,
  nodes: Node[],
  scenes: Map<string, number>,
): Promise<void> {
  const expected = [...scenes].flatMap(([scene, n]) =>
    cellsOf(n).map((geocode) => ({
      id: `${COLLECTION.id}_${scene}_g${geocode}`,
      grid: 'geohash' as const,
      geocode,
      n,
    })),
  );
  for (const { storage, replica } of nodes) {
    await replica.catchUp();
    await replica.loadSlots(replica.storedSlots);
    const own = expected.filter((tile) => replica.hasSlot(slotOfTile(tile)));
    const { ids } = storage.index.query({});
    assert.deepEqual(ids.toSorted(), own.map(({ id }) => id).sort());
    const known: string[] = [];
    for await (const { id } of storage.catalogue.scenes.values({ prefix: `${COLLECTION.id}/` }))
      known.push(id);
    assert.deepEqual(known.sort(), [...scenes.keys()].sort());
    for (const tile of await storage.getTiles(ids)) {
      const { n } = own.find(({ id }) => id === tile.id)!;
      assert.equal(tile.start, n * 1000, tile.id);
      for (const { name, crc32 } of tile.groups) {
        const path = `tiles/geohash/${tile.geocode.slice(0, 3)}/${tile.geocode}/${tile.id}.${tile.version}/${name}.tif`;
        assert.deepEqual(await objects.get(path, { crc32 }), bytesOf(n, tile.geocode, name));
      }
    }
  }
}

test('whatever nodes write, delete and replace at the same time, each has its slots of the result', async (t) => {
  const cluster = await sharedStores(t);
  const nodes = await Promise.all(['a', 'b', 'c'].map((id) => startNode(cluster, id)));
  for (const [i, { replica }] of nodes.entries())
    await replica.loadSlots(everySlot.filter((slot) => slot % 3 !== i));

  const scenes = new Map<string, number>();
  const write = async (node: Node, scene: string, n: number) => {
    await writeScene(node.storage, scene, n);
    scenes.set(scene, n);
  };
  // The first writes all create the collection.
  await Promise.all(nodes.map((node, i) => write(node, `first-${i}`, i)));
  for (let round = 0; round < 6; round++) {
    await Promise.all(nodes.map((node, i) => write(node, `scene-${i + 3 * (round % 2)}`, 10 * round + i)));
    if (round === 2)
      await writeLogCheckpoint({
        log: new CommitLog(cluster.coordination),
        objects: cluster.objects,
      });
  }
  await nodes[0]!.storage.collections.deleteScene(COLLECTION.id, 'first-1');
  scenes.delete('first-1');
  await assertHolds(cluster, nodes, scenes);

  const late = await startNode(cluster, 'd');
  await late.replica.loadSlots(everySlot);
  await assertHolds(cluster, [late], scenes);
  await late.replica.dropSlots(everySlot.filter((slot) => slot % 2 === 0));
  await assertHolds(cluster, [late], scenes);
});

test('of two writers of one scene, one gets the error that the other is busy', async (t) => {
  const cluster = await sharedStores(t);
  const [a, b] = await Promise.all(['a', 'b'].map((id) => startNode(cluster, id)));
  const results = await Promise.allSettled([writeScene(a!.storage, 's', 1), writeScene(b!.storage, 's', 2)]);
  const refused = results.filter((result) => result.status === 'rejected');
  assert.ok(refused.length <= 1);
  for (const { reason } of refused) assert.equal(reason.code, 'TW_DHT_CLAIMED');
});

test('a disconnected node catches up from the log, or from a checkpoint if the log is gone', async (t) => {
  const cluster = await sharedStores(t);
  const a = await startNode(cluster, 'a');
  await a.replica.loadSlots(everySlot);
  const { scenes, write } = writerOf(a);
  await write('s1', 1);
  let b = await startNode(cluster, 'b');
  await b.replica.loadSlots(everySlot);
  await b.close();

  await write('s2', 2);
  b = await startNode(cluster, 'b');
  await assertHolds(cluster, [b], scenes);
  await b.close();

  await write('s1', 3);
  await write('s3', 4);
  await a.storage.collections.deleteScene(COLLECTION.id, 's2');
  scenes.delete('s2');
  const log = new CommitLog(cluster.coordination, 0);
  const seq = await writeLogCheckpoint({ log, objects: cluster.objects });
  assert.equal(seq, a.replica.applied);
  await write('s4', 5);
  b = await startNode(cluster, 'b');
  await assertHolds(cluster, [a, b], scenes);
});

test('a node one commit behind a checkpoint reads only that commit; a node far behind writes only what has changed', async (t) => {
  const cluster = await sharedStores(t);
  const a = await startNode(cluster, 'a');
  let b = await startNode(cluster, 'b');
  await b.replica.loadSlots(everySlot);
  const { scenes, write } = writerOf(a);
  for (let n = 1; n <= 20; n++) await write(`s${n}`, n);
  await b.replica.catchUp();
  for (const [keptEntries, n] of [
    [5, 21],
    [0, 22],
  ] as const) {
    await b.close();
    await write(`late-${n}`, n);
    const log = new CommitLog(cluster.coordination, keptEntries);
    await writeLogCheckpoint({ log, objects: cluster.objects });
    let tiles = 0;
    b = await startNode(cluster, 'b', ({ added = [], removed = [] }) => {
      tiles += added.length + removed.length;
    });
    await assertHolds(cluster, [b], scenes);
    assert.equal(tiles, cellsOf(n).length, `${keptEntries} entries are kept`);
  }
});

test('a lagging node starts although an older version of the program has removed segments that the log still names', async (t) => {
  const cluster = await sharedStores(t);
  const { objects, coordination } = cluster;
  const a = await startNode(cluster, 'a');
  let b = await startNode(cluster, 'b');
  await b.replica.loadSlots(everySlot);
  const { scenes, write } = writerOf(a);
  await write('s1', 1);
  await b.replica.catchUp();
  await b.close();
  await write('s1', 2);
  await write('s2', 3);
  await writeLogCheckpoint({ log: new CommitLog(coordination), objects });
  // Older versions do not trim the log before they collect garbage.
  const segments: string[] = [];
  for await (const { name } of objects.list('catalogue/segments/')) segments.push(name);
  await objects.delete(segments);
  await write('s3', 4);
  b = await startNode(cluster, 'b');
  await assertHolds(cluster, [b], scenes);
});

test('a node that loads slots while it is slightly behind a checkpoint applies the commits that it lacks', async (t) => {
  const cluster = await sharedStores(t);
  const a = await startNode(cluster, 'a');
  let edits = 0;
  const b = await startNode(cluster, 'b', (commit) => {
    edits += commit.edits?.length ?? 0;
  });
  const { scenes, write } = writerOf(a);
  for (let n = 1; n <= 20; n++) await write(`s${n}`, n);
  await b.replica.catchUp();
  // It does not follow the log any more.
  await b.replica.close();
  edits = 0;
  await write('late', 21);
  const log = new CommitLog(cluster.coordination);
  await writeLogCheckpoint({ log, objects: cluster.objects });
  await b.replica.loadSlots(everySlot);
  assert.equal(edits, 1, 'of the commit that it lacked');
  await assertHolds(cluster, [b], scenes);
});

/** Node `a` with five scenes, and the folder of node `b`, which has loaded all slots. */
async function withStoppedNode(cluster: SharedStores) {
  const a = await startNode(cluster, 'a');
  const { scenes, write } = writerOf(a);
  for (let n = 1; n <= 5; n++) await write(`s${n}`, n);
  const b = await startNode(cluster, 'b');
  await b.replica.loadSlots(everySlot);
  await b.close();
  return { a, scenes, write };
}

/** Starts a replica whose folder cannot be changed after `steps` steps, as if the node was killed then. Returns false if it was. */
async function endsWithin(
  { folder, objects, coordination }: SharedStores,
  id: string,
  steps: number,
  epochId: string | undefined,
  work: (replica: Replica, storage: Storage) => Promise<void>,
): Promise<boolean> {
  const storage = await Storage.open(join(folder, id), { reserve: 0 });
  const killed = new Error('killed');
  const replicate = storage.replicate.bind(storage);
  let left = steps;
  storage.replicate = async (...all) => {
    if (left-- === 0) throw killed;
    return replicate(...all);
  };
  const log = new CommitLog(coordination);
  const options = { storage, objects, log, cluster: 'c', prefixLengths, ...(epochId && { epochId }) };
  try {
    const replica = await Replica.open(options);
    await work(replica, storage);
    return true;
  } catch (error) {
    assert.equal(error, killed);
    return false;
  } finally {
    await storage.close();
  }
}

for (const epochId of [undefined, 'restored'])
  test(`a node that ends at any step of loading a checkpoint has the right records after the next start${epochId ? ', after a restore' : ''}`, async (t) => {
    const cluster = await sharedStores(t);
    const { a, scenes, write } = await withStoppedNode(cluster);
    await write('s1', 11);
    await write('s6', 12);
    await a.storage.collections.deleteScene(COLLECTION.id, 's3');
    scenes.delete('s3');
    const log = new CommitLog(cluster.coordination, 0);
    await writeLogCheckpoint({ log, objects: cluster.objects });
    await write('s2', 13);

    let steps = 0;
    for (let isDone = false; !isDone; steps++) {
      const id = `b-${steps}`;
      await cp(join(cluster.folder, 'b'), join(cluster.folder, id), { recursive: true });
      isDone = await endsWithin(cluster, id, steps, epochId, async (replica) => {
        await replica.catchUp();
        await replica.loadSlots(everySlot);
      });
      const next = await startNode(cluster, id, undefined, epochId);
      await next.replica.loadSlots(everySlot.filter((slot) => slot % 2 === 0));
      await assertHolds(cluster, [next], scenes);
      await next.close();
    }
    assert.ok(steps > 8, `${steps} steps`);
  });

test('a node that ends at any step of dropping slots answers for the others only', async (t) => {
  const cluster = await sharedStores(t);
  const { scenes } = await withStoppedNode(cluster);
  const isKept = (slot: number) => slot % 3 === 0;
  const kept = everySlot.filter(isKept);
  let leftovers = 0;
  for (let steps = 0, isDone = false; !isDone; steps++) {
    const id = `b-${steps}`;
    await cp(join(cluster.folder, 'b'), join(cluster.folder, id), { recursive: true });
    isDone = await endsWithin(cluster, id, steps, undefined, async (replica, storage) => {
      await replica.catchUp();
      const dropped = replica.dropSlots(everySlot.filter((slot) => !isKept(slot)));
      const hasDropped = await dropped.then(
        () => true,
        () => false,
      );
      const everything = storage.index.query({}).ids;
      const answered = await idsOf(storage, replica, kept);
      const expected = (await storage.getTiles(everything)).filter((tile) => isKept(slotOfTile(tile)));
      assert.deepEqual(answered.toSorted(), expected.map(({ id }) => id).sort());
      if (hasDropped) assert.deepEqual(everything.toSorted(), answered.toSorted());
      else if (!replica.hasSlot(1)) leftovers += everything.length - answered.length;
      await dropped;
    });
    const next = await startNode(cluster, id);
    await next.replica.loadSlots(everySlot);
    await assertHolds(cluster, [next], scenes);
    await next.close();
  }
  assert.ok(leftovers > 0);
});

/** The ids of the tiles with which a node answers for some slots. */
async function idsOf(storage: Storage, replica: Replica, slots: number[]): Promise<string[]> {
  const owners = new ScatterGather(
    storage,
    { replica, prefixLengths } as unknown as Cluster,
    undefined as never,
  );
  owners.register<null, string[]>(
    { name: 'ids', question: () => undefined, answer: () => undefined },
    async (_, { only }) => storage.index.query(only ? { where: only } : {}).ids,
  );
  const asked = new SlotSet(slots).toText();
  const { answer, error } = await owners.handle({
    ...{ kind: 'ids', question: null, slots: asked, seq: replica.applied, wait: 0 },
  });
  assert.equal(error, undefined);
  return answer as string[];
}

test('a change of a node that is far behind is built when its slots are loaded again', async (t) => {
  const cluster = await sharedStores(t);
  const a = await startNode(cluster, 'a');
  const { scenes, write } = writerOf(a);
  await write('s1', 1);
  let b = await startNode(cluster, 'b');
  await b.replica.loadSlots(everySlot);
  await b.close();
  await write('s1', 3);
  await writeLogCheckpoint({ log: new CommitLog(cluster.coordination, 0), objects: cluster.objects });
  b = await startNode(cluster, 'b');
  await b.replica.catchUp();
  const { storage, replica, locks } = b;
  assert.deepEqual(replica.slots, []);

  const lock = await locks.lockShared();
  const steps: string[] = [];
  const committed = lock.commit(async () => {
    steps.push('built');
    const removed = await storage.getTiles(storage.index.query({}).ids);
    for (const tile of removed) assert.equal(tile.start, 3000);
    return { removed };
  });
  await sleep(200);
  steps.push('loads');
  await replica.loadSlots(everySlot);
  await committed;
  await lock.release();
  assert.deepEqual(steps.slice(0, 2), ['loads', 'built']);
  assert.equal(storage.index.size, 0);
  await a.replica.catchUp();
  assert.ok(scenes.size === 1 && a.storage.index.size === 0);
});

test('commits are applied while slots are loaded', async (t) => {
  const cluster = await sharedStores(t);
  const a = await startNode(cluster, 'a');
  const { scenes, write } = writerOf(a);
  for (let n = 1; n <= 5; n++) await write(`s${n}`, n);
  await writeLogCheckpoint({ log: new CommitLog(cluster.coordination), objects: cluster.objects });
  let commits = 0;
  const get: typeof cluster.objects.get = async (name, ...rest) => {
    if (name.startsWith('catalogue/parts/')) {
      commits++;
      await write(`s${commits}`, 20 + commits);
      await write(`late-${commits}`, 30 + commits);
      await b.replica.waitForCommit(a.replica.applied, 60_000);
    }
    return cluster.objects.get(name, ...rest);
  };
  const b = await startNode({ ...cluster, objects: withMethod(cluster.objects, 'get', get) }, 'b');
  for (let first = 0; first < SLOTS; first += SLOTS / 4)
    await b.replica.loadSlots(everySlot.slice(first, first + SLOTS / 4));
  assert.equal(commits, 4, 'each time, the delta is read once');
  await assertHolds(cluster, [b], scenes);
});

/** The same object with another method. */
function withMethod<T extends object, K extends keyof T>(object: T, name: K, method: T[K]): T {
  return new Proxy(object, {
    get(target, key) {
      if (key === name) return method;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test('a checkpoint ends although commits keep arriving, and is written once', async (t) => {
  const cluster = await sharedStores(t);
  const a = await startNode(cluster, 'a');
  await writeScene(a.storage, 's0', 1);
  let commits = 0;
  const isAnother = (name: string) => name.startsWith('catalogue/parts/') && commits < 20;
  const { objects } = cluster;
  const put: typeof objects.put = async (name, ...rest) => {
    if (isAnother(name)) await writeScene(a.storage, `s${++commits}`, 1);
    return objects.put(name, ...rest);
  };
  const busy = withMethod(objects, 'put', put);
  const log = new CommitLog(cluster.coordination);
  const seq = await writeLogCheckpoint({ log, objects: busy });
  assert.equal(seq, 1);
  const manifests: string[] = [];
  for await (const { name } of objects.list('catalogue/manifests/')) manifests.push(name);
  assert.equal(manifests.length, 1);
  assert.ok(commits > 0);
});

test('the wait for a commit ends with its signal, with the log, and with the replica', async (t) => {
  const cluster = await sharedStores(t);
  const { replica, storage, close } = await startNode(cluster, 'a');
  await writeScene(storage, 's1', 1);
  const beyond = replica.applied + 1;
  const timeoutMs = 3_600_000;

  await assert.rejects(replica.waitForNamedCommit(beyond, timeoutMs), { code: 'TW_DHT_NO_COMMIT' });
  const gone = new AbortController();
  const reason = new Error('nobody needs it');
  const waits = [
    replica.waitForCommit(beyond, timeoutMs, gone.signal),
    replica.waitForNamedCommit(beyond, timeoutMs, gone.signal),
  ];
  gone.abort(reason);
  waits.push(replica.waitForCommit(beyond, timeoutMs, gone.signal));
  for (const end of await Promise.allSettled(waits))
    assert.equal(end.status === 'rejected' && end.reason, reason);

  const next = replica.waitForCommit(beyond, timeoutMs);
  await writeScene(storage, 's2', 2);
  await next;
  await replica.waitForNamedCommit(beyond, timeoutMs);

  const last = replica.waitForCommit(beyond + 1, timeoutMs);
  const ended = assert.rejects(last, { code: 'TW_DHT_BEHIND' });
  await close();
  await ended;
  await assert.rejects(replica.waitForCommit(beyond + 1, timeoutMs), { code: 'TW_DHT_BEHIND' });
});
