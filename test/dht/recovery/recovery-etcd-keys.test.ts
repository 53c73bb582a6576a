/** An etcd that has lost everything is rebuilt from the store, and the nodes continue with their old disks. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { LevelStore } from '../../../src/coordination/level-store.js';
import { archivedEntryName, listArchived } from '../../../src/dht/log/archive.js';
import { writeLogCheckpoint } from '../../../src/dht/log/checkpoint.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { restoreCoordination } from '../../../src/dht/recovery.js';
import { SLOTS } from '../../../src/dht/slots.js';
import { hooked } from '../../coordination/faulty-stores.js';
import {
  COLLECTION,
  cellsOf,
  factsOf,
  stageTile,
  tileRecord,
  writeScene,
} from '../../storage/sample-scenes.js';
import { tilewright } from '../../support/command.js';
import { EtcdCluster, noEtcd } from '../../support/etcd.js';
import { startMember, until } from '../cluster-members.js';
import { type SharedStores, sharedStores } from '../shared-stores.js';

async function emptied(where: SharedStores, name = 'coordination-2'): Promise<SharedStores> {
  const coordination = await LevelStore.open(join(where.folder, name));
  where.stops.push(() => coordination.close());
  return { ...where, coordination };
}

/** A cluster with a checkpoint and commits after it. */
async function written(where: SharedStores): Promise<Map<string, number>> {
  const a = await startMember(where, 'a');
  const b = await startMember(where, 'b');
  const scenes = new Map<string, number>();
  for (let n = 1; n <= 6; n++) {
    await writeScene([a, b][n % 2]!.storage, `s${n % 4}`, n);
    scenes.set(`s${n % 4}`, n);
    if (n === 3)
      await writeLogCheckpoint({
        log: new CommitLog(where.coordination),
        objects: where.objects,
      });
  }
  await until(
    'all slots are loaded',
    () => a.cluster.replica.slots.length === SLOTS && b.cluster.replica.slots.length === SLOTS,
  );
  for (const { cluster } of [a, b]) await cluster.replica.catchUp();
  await a.stop();
  await b.stop();
  return scenes;
}

const idsOf = (scenes: Map<string, number>) =>
  [...scenes].flatMap(([scene, n]) => cellsOf(n).map((cell) => `${COLLECTION.id}_${scene}_g${cell}`)).sort();

test('all acknowledged commits are restored, on old disks and on a new one', async (t) => {
  const where = await sharedStores(t);
  const scenes = await written(where);
  const fresh = await emptied(where);
  await assert.rejects(startMember(fresh, 'a'), { code: 'TW_DHT_OTHER_COORDINATION' });
  const report = await restoreCoordination(fresh.coordination, where.objects);
  assert.equal(report.commits, 6);
  assert.ok(report.checkpoint >= 3);
  assert.equal(report.collections, 1);
  await assert.rejects(restoreCoordination(fresh.coordination, where.objects), { code: 'TW_DHT_NOT_EMPTY' });

  const nodes = await Promise.all(['a', 'b', 'c'].map((id) => startMember(fresh, id)));
  await assert.rejects(restoreCoordination(fresh.coordination, where.objects), {
    code: 'TW_DHT_STILL_RUNNING',
    message: /a, b, c/,
  });
  await writeScene(nodes[2]!.storage, 's9', 9);
  scenes.set('s9', 9);
  await until('two owners', () =>
    nodes[0]!.cluster.placement.slots.every(
      (owners) => owners.filter(({ state }) => state === 'available').length === 2,
    ),
  );
  const found = new Set<string>();
  for (const { cluster, storage } of nodes) {
    await cluster.replica.catchUp();
    for (const id of storage.index.query({}).ids) found.add(id);
    for (const tile of await storage.getTiles(storage.index.query({}).ids))
      await storage.ensureFiles(tile, tile.groups);
  }
  assert.deepEqual([...found].sort(), idsOf(scenes));
  for (const { failures } of nodes) assert.deepEqual(failures, []);
});

test('a node that has seen a lost commit starts over', async (t) => {
  const where = await sharedStores(t);
  const scenes = await written(where);
  // As if the writer of the last commit had been killed between etcd and the archive, before it was acknowledged.
  const last = (await listArchived(where.objects)).at(-1)!;
  await where.objects.delete([archivedEntryName(last)]);
  const fresh = await emptied(where);
  assert.equal((await restoreCoordination(fresh.coordination, where.objects)).commits, last - 1);
  // Delivery 6 of s2 is lost; another delivery has its number now.
  scenes.set('s2', 2);
  const b = await startMember(fresh, 'b');
  await writeScene(b.storage, 's8', 8);
  scenes.set('s8', 8);
  const a = await startMember(fresh, 'a');
  for (const { cluster, storage } of [a, b]) {
    await until('all slots are loaded', () => cluster.replica.slots.length === SLOTS);
    await cluster.replica.catchUp();
    assert.deepEqual(storage.index.query({}).ids.toSorted(), idsOf(scenes));
  }
});

test('a store that cannot be restored completely is refused, and nothing is written', async (t) => {
  const where = await sharedStores(t);
  await written(where);
  const fresh = await emptied(where);
  const keys = async () => (await fresh.coordination.read([{ key: ' ', end: '~' }])).gets[0]!.kvs;
  const copies = await listArchived(where.objects);
  const bytes = await where.objects.get(archivedEntryName(copies.at(-2)!));
  await where.objects.delete([archivedEntryName(copies.at(-2)!)]);
  await assert.rejects(restoreCoordination(fresh.coordination, where.objects), {
    code: 'TW_DHT_COPIES_MISSING',
  });
  assert.deepEqual(await keys(), []);
  await where.objects.put(archivedEntryName(copies.at(-2)!), bytes);

  const other = await sharedStores(t);
  await (await startMember(other, 'x')).stop();
  await assert.rejects(restoreCoordination(other.coordination, where.objects), {
    code: 'TW_DHT_OTHER_CLUSTER',
  });
  const nobody = await sharedStores(t);
  await assert.rejects(restoreCoordination(nobody.coordination, nobody.objects), {
    code: 'TW_DHT_STORE_IDENTITY',
  });

  // An interrupted restore starts over.
  const { id } = JSON.parse((await where.objects.get('cluster.json')).toString()) as { id: string };
  await fresh.coordination.transact({
    success: [
      { op: 'put', key: 'restoring', value: id },
      { op: 'put', key: 'log/0000000000000009', value: 'left' },
    ],
  });
  await restoreCoordination(fresh.coordination, where.objects);
  assert.ok((await keys()).every(({ key, value }) => key !== 'restoring' && value !== 'left'));
});

test('by the command, into a real etcd', { skip: noEtcd }, async (t) => {
  const where = await sharedStores(t);
  await written(where);
  const etcd = await EtcdCluster.start(t);
  const store = pathToFileURL(join(where.folder, 'store')).href;
  const flags = ['--etcd', etcd.urls.join(), '--store', store, '--format', 'json'];
  const { code, stdout, stderr } = await tilewright('node', 'restore', ...flags);
  assert.equal(code, 0, stderr);
  assert.equal((JSON.parse(stdout) as { commits: number }).commits, 6);
  assert.match(stderr, /subscriptions are not in the store: create them again/);
  const again = await tilewright('node', 'restore', ...flags);
  assert.notEqual(again.code, 0);
  assert.match(again.stderr, /TW_DHT_NOT_EMPTY/);
});

test('running nodes are noticed in the store, and no node starts with the previous etcd after a restore', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  await writeScene(a.storage, 's1', 1);
  const fresh = await emptied(where);
  const waited: string[][] = [];
  const onWait = (nodes: string[]) => waited.push(nodes);
  const keys = async () => (await fresh.coordination.read([{ key: ' ', end: '~' }])).gets[0]!.kvs;
  await assert.rejects(restoreCoordination(fresh.coordination, where.objects, { onWait }), {
    code: 'TW_DHT_STILL_RUNNING',
    message: /nodes of the cluster are running: a;/,
  });
  assert.deepEqual(waited, [['a']]);
  assert.deepEqual(await keys(), []);

  await a.stop();
  // The state that a killed node leaves.
  await where.objects.put('running/b/1', Buffer.alloc(0));
  const report = await restoreCoordination(fresh.coordination, where.objects, {
    coordinationLabel: 'an etcd with --cluster-name fresh',
    timeoutMs: 50,
    onWait,
  });
  assert.equal(report.commits, 1);
  assert.deepEqual(waited, [['a'], ['b']]);
  await assert.rejects(startMember(where, 'a'), {
    code: 'TW_DHT_OTHER_COORDINATION',
    message:
      /uses an etcd with --cluster-name fresh; .* were abandoned by that cluster with a "node restore"/,
  });
  const again = await startMember(fresh, 'a');
  await writeScene(again.storage, 's2', 2);
});

test('two clusters that write to one store notice it and stop committing', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  await writeScene(a.storage, 's1', 1);
  await a.stop();
  const copy = await emptied(where);
  await restoreCoordination(copy.coordination, where.objects);
  // As an older version would have started it, which does not know restores.
  for await (const { name } of where.objects.list('restorations/')) await where.objects.delete([name]);
  const { coordination } = where;
  await coordination.transact({ success: [{ op: 'put', key: 'restored', value: '{"id":"r"}' }] });
  const nodes = [await startMember(where, 'a'), await startMember(copy, 'b')];
  await writeScene(nodes[0]!.storage, 's2', 2);
  await assert.rejects(writeScene(nodes[1]!.storage, 's3', 3), { code: 'TW_DHT_OTHER_WRITER' });
  await assert.rejects(writeScene(nodes[1]!.storage, 's4', 4), { code: 'TW_DHT_OTHER_WRITER' });
  await writeScene(nodes[0]!.storage, 's5', 5);
});

test('versions grow across restores, and garbage collection keeps objects that are being written under them', async (t) => {
  let where = await sharedStores(t);
  const versions: string[] = [];
  for (let restorations = 0; restorations < 3; restorations++) {
    if (restorations > 0) {
      // The new store assigns the same revisions again.
      where = await emptied(where, `coordination-${1 + restorations}`);
      await restoreCoordination(where.coordination, where.objects);
    }
    const a = await startMember(where, 'a');
    for (let n = 1; n <= 3; n++) versions.push((await writeScene(a.storage, 's', n)).version);
    const cells = cellsOf(4);
    const write = await a.storage.beginScene(COLLECTION, 's', cells);
    for (const cell of cells) await stageTile(write, 4, cell);
    await write.publish(cells);
    await a.cluster.collectGarbage({ keepMs: 0, minIntervalMs: 0 });
    const scene = await write.commit(
      factsOf(4),
      cells.map((cell) => tileRecord(write, 4, cell)),
    );
    versions.push(scene.version);
    await until('all slots are loaded', () => a.cluster.replica.slots.length === SLOTS);
    for (const tile of await a.storage.getTiles(a.storage.index.query({}).ids))
      for (const { name, crc32 } of tile.groups)
        await where.objects.get(
          `tiles/geohash/${tile.geocode.slice(0, 3)}/${tile.geocode}/${tile.id}.${tile.version}/${name}.tif`,
          { crc32 },
        );
    await a.stop();
  }
  assert.deepEqual(versions, [...new Set(versions)].sort());
});

test('a node is not ready while it loads slots that no other node holds, nor after a failed write', async (t) => {
  const where = await sharedStores(t);
  await written(where);
  const fresh = await emptied(where);
  await restoreCoordination(fresh.coordination, where.objects);
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const isPart = (name: string) => /^checkpoints\/.*\/\d+/.test(name);
  const objects = hooked(where.objects, 'get', async (name) => {
    if (isPart(name)) await gate;
  });
  const { cluster, storage } = await startMember({ ...fresh, objects }, 'c');
  assert.equal(cluster.isReady, false);
  open();
  await until('the node is ready', () => cluster.isReady);
  assert.equal(cluster.replica.slots.length, SLOTS);

  // The state after a full disk: commits of others cannot be applied any more.
  t.mock.getter(storage.catalogue, 'writeError', () => new Error('no space is left'));
  assert.equal(cluster.isReady, false);
});
