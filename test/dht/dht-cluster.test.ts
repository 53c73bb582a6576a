/** Nodes join, leave and drain; each has its own folder, all in one process. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareAndSet } from '../../src/coordination/index.js';
import { LevelStore } from '../../src/coordination/level-store.js';
import { Cluster } from '../../src/dht/cluster.js';
import { archivedEntryName } from '../../src/dht/log/archive.js';
import { CommitLog } from '../../src/dht/log/log.js';
import { readableOwners } from '../../src/dht/placement.js';
import { removeNode } from '../../src/dht/placement-changes.js';
import {
  decodePlacement,
  encodePlacement,
  PLACEMENT_KEY,
  readPlacement,
} from '../../src/dht/placement-store.js';
import { SLOTS, slotOf } from '../../src/dht/slots.js';
import { type ObjectStore, Storage } from '../../src/storage/index.js';
import { COLLECTION, cellsOf, writeScene } from '../storage/sample-scenes.js';
import { atEnd } from '../support/at-end.js';
import { type SharedStores, sharedStores } from './shared-stores.js';

interface Node {
  storage: Storage;
  cluster: Cluster;
  stop(): Promise<void>;
}

async function start(
  { folder, objects, coordination, stops }: SharedStores,
  id: string,
  more: { checkpointAfter?: number } = {},
): Promise<Node> {
  const storage = await Storage.open(join(folder, id), { reserve: 0 });
  const member = { id, url: `http://${id}`, zone: id, weight: 1, software: '0', format: 1 };
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const times = { gracePeriodMs: 300, releaseDelayMs: 100 };
  const cluster = await Cluster.join({
    member,
    storage,
    objects,
    coordination,
    owners: 2,
    onFailure,
    ...times,
    ...more,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= (async () => {
      await cluster.close();
      await storage.close();
      assert.deepEqual(failures, []);
    })();
    return stopped;
  };
  stops.push(stop);
  return { storage, cluster, stop };
}

async function until(what: string, is: () => boolean): Promise<void> {
  for (const startedAt = performance.now(); !is(); await sleep(20))
    assert.ok(performance.now() - startedAt < 30_000, `${what} within 30 s`);
}

/** True if every slot has `owners` owners, all of them available, and these hold it. */
const isSettled = (nodes: Node[], owners: number) => () =>
  nodes.every(({ cluster: { placement } }) =>
    placement.slots.every(
      (slot) => slot.length === owners && slot.every(({ state }) => state === 'available'),
    ),
  ) &&
  nodes.every(({ cluster: { placement, replica, self } }) =>
    placement.slots.every(
      (slot, number) => slot.some(({ node }) => node === self) === replica.hasSlot(number),
    ),
  );

/** Each tile of these scenes is on all nodes that answer for it, and each slot has an owner that answers. */
async function assertAnswered(nodes: Node[], scenes: Map<string, number>): Promise<void> {
  for (const { cluster } of nodes) await cluster.replica.catchUp();
  const { placement } = nodes[0]!.cluster;
  for (const [scene, n] of scenes)
    for (const geocode of cellsOf(n)) {
      const slot = slotOf('geohash', geocode, placement.prefixLengths.geohash);
      const owners = readableOwners(placement.slots[slot]!).map(({ node }) => node);
      assert.ok(owners.length > 0);
      for (const owner of owners) {
        const node = nodes.find(({ cluster }) => cluster.self === owner);
        assert.ok(
          node?.storage.index.has(`${COLLECTION.id}_${scene}_g${geocode}`),
          `${scene} ${geocode} on ${owner}`,
        );
      }
    }
}

test('nodes join, drain, leave and rejoin, and every tile always has an owner that answers', async (t) => {
  const where = await sharedStores(t);
  const a = await start(where, 'a');
  await until('a alone', isSettled([a], 1));
  const scenes = new Map<string, number>();
  const write = async (node: Node, scene: string, n: number) => {
    await writeScene(node.storage, scene, n);
    scenes.set(scene, n);
  };
  await write(a, 's1', 1);
  const b = await start(where, 'b');
  await write(b, 's2', 2);
  await until('two nodes', isSettled([a, b], 2));
  await assertAnswered([a, b], scenes);

  const c = await start(where, 'c');
  await Promise.all([write(a, 's3', 3), write(b, 's4', 4), write(c, 's5', 5)]);
  await until('three nodes', isSettled([a, b, c], 2));
  await assertAnswered([a, b, c], scenes);
  const counts = [a, b, c].map(({ cluster }) => cluster.replica.slots.length);
  for (const count of counts) assert.ok(Math.abs(count - (2 * SLOTS) / 3) < SLOTS / 50, `${counts}`);

  await a.cluster.drain('b');
  await until('b drained', () => b.cluster.replica.slots.length === 0 && isSettled([a, c], 2)());
  await write(b, 's1', 7);
  await assertAnswered([a, c], scenes);

  // A node that is missing for longer than the grace period loses its slots; when it rejoins, it gets slots again.
  await c.stop();
  await until('c replaced', isSettled([a], 1));
  await write(a, 's6', 6);
  await b.stop();
  const again = await start(where, 'c');
  await until('c again', isSettled([a, again], 2));
  await assertAnswered([a, again], scenes);
});

test('checkpoints are written as commits arrive, and a node that joins later needs no older log', async (t) => {
  const where = await sharedStores(t);
  const a = await start(where, 'a', { checkpointAfter: 3 });
  await until('a alone', isSettled([a], 1));
  const scenes = new Map<string, number>();
  for (let n = 1; n <= 7; n++) {
    await writeScene(a.storage, `s${n % 4}`, n);
    scenes.set(`s${n % 4}`, n);
  }
  const log = new CommitLog(where.coordination);
  let seq = 0;
  const startedAt = performance.now();
  for (; seq < 5; await sleep(50)) {
    seq = (await log.readCheckpoint())?.seq ?? 0;
    assert.ok(performance.now() - startedAt < 30_000, 'a checkpoint within 30 s');
  }
  assert.equal((await log.readSince(0)).kind, 'checkpoint');
  const b = await start(where, 'b');
  await until('two nodes', isSettled([a, b], 2));
  await assertAnswered([a, b], scenes);
});

test('a folder of another cluster, and a coordination store without the cluster, are refused', async (t) => {
  const where = await sharedStores(t);
  const a = await start(where, 'a');
  await writeScene(a.storage, 's1', 1);
  await a.stop();
  const other = await sharedStores(t);
  await assert.rejects(start({ ...other, folder: where.folder }, 'a'), { code: 'TW_DHT_OTHER_FOLDER' });
  const empty = await LevelStore.open(join(where.folder, 'coordination-2'));
  atEnd(t, () => empty.close());
  await assert.rejects(start({ ...where, coordination: empty }, 'b'), { code: 'TW_DHT_OTHER_COORDINATION' });
});

test('a commit is acknowledged and archived although the store became unreachable just after it was made', async (t) => {
  const where = await sharedStores(t);
  const { objects } = where;
  let refusals = 0;
  const put: ObjectStore['put'] = async (name, content, options) => {
    if (name.startsWith('catalogue/log/') && refusals++ < 2) throw new Error('the store is away');
    return objects.put(name, content, options);
  };
  const failing = new Proxy(objects, {
    get: (target, key) => (key === 'put' ? put : (Reflect.get(target, key) as () => unknown)?.bind?.(target)),
  });
  const a = await start({ ...where, objects: failing }, 'a');
  await until('a alone', isSettled([a], 1));
  await writeScene(a.storage, 's1', 1);
  await assertAnswered([a], new Map([['s1', 1]]));
  assert.equal(refusals, 3);
  assert.ok(await objects.head(archivedEntryName(1)));
});

test('a node that was considered dead rejoins by itself', async (t) => {
  const where = await sharedStores(t);
  const a = await start(where, 'a');
  const b = await start(where, 'b');
  await until('two nodes', isSettled([a, b], 2));
  await writeScene(a.storage, 's1', 1);
  const stored = (await readPlacement(where.coordination))!;
  const without = encodePlacement(removeNode(decodePlacement(stored.value), 'b'));
  assert.ok(
    (
      await compareAndSet(where.coordination, {
        key: PLACEMENT_KEY,
        value: without,
        revision: stored.modRevision,
      })
    ).set,
  );
  await until('b is gone', () => a.cluster.placement.version > decodePlacement(stored.value).version);
  await until('two nodes again', isSettled([a, b], 2));
  await assertAnswered([a, b], new Map([['s1', 1]]));
});

test('a node whose lease is lost while it joins rejoins, and nothing else fails', async (t) => {
  const { folder, objects, coordination, stops } = await sharedStores(t);
  const member = { id: 'a', url: 'http://a', zone: 'a', weight: 1, software: '0', format: 1 };
  const memberKey = async () => (await coordination.read([{ key: 'members/a' }])).gets[0]!.kvs[0];
  let isLost = false;
  const losing = new Proxy(coordination, {
    get(target, key) {
      if (key !== 'read') return (Reflect.get(target, key) as () => unknown).bind(target);
      return async (...args: Parameters<typeof coordination.read>) => {
        if (!isLost && args[0][0]?.key === 'placement') {
          isLost = true;
          const before = (await memberKey())!;
          await coordination.revokeLease(before.lease);
          while (((await memberKey())?.createRevision ?? 0) <= before.createRevision) await sleep(50);
          await sleep(300);
        }
        return target.read(...args);
      };
    },
  });
  const storage = await Storage.open(join(folder, 'a'), { reserve: 0 });
  const failures: string[] = [];
  const onFailure = (error: unknown) => failures.push(String(error));
  const cluster = await Cluster.join({
    member,
    storage,
    objects,
    coordination: losing,
    owners: 2,
    onFailure,
  });
  stops.push(async () => {
    await cluster.close();
    await storage.close();
  });
  await until('a alone', isSettled([{ storage, cluster, stop: async () => {} }], 1));
  assert.ok(isLost);
  assert.equal(failures.length, 1);
  assert.match(failures[0]!, /lost its lease in etcd/);
});
