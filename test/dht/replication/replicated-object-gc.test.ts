/** Garbage collection at any moment removes nothing that is or becomes visible, and in the end leaves nothing unused. */
import assert from 'node:assert/strict';
import { readdir, readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { collectObjectGarbage } from '../../../src/dht/garbage.js';
import { importFolder } from '../../../src/dht/import.js';
import { readManifest, segmentsOf, writeLogCheckpoint } from '../../../src/dht/log/checkpoint.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { SLOTS } from '../../../src/dht/slots.js';
import {
  type DerivedWrite,
  newVersion,
  type ObjectStore,
  openObjectStore,
  Storage,
  type TileRecord,
  versionsOf,
  writeFileSynced,
} from '../../../src/storage/index.js';
import { hooked } from '../../coordination/faulty-stores.js';
import {
  bytesOf,
  COLLECTION,
  cellsOf,
  factsOf,
  GROUPS,
  stageTile,
  tileRecord,
  writeDerived,
  writeScene,
} from '../../storage/sample-scenes.js';
import { BUCKET, CREDENTIALS, S3Server, s3SkipReason, setEnvironment } from '../../support/s3.js';
import { type RunningMember, startMember, until } from '../cluster-members.js';
import { type SharedStores, sharedStores } from '../shared-stores.js';

async function names(objects: ObjectStore, prefix = ''): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of objects.list(prefix)) found.push(name);
  return found;
}

/** Every file of every tile of a node is in the store, unchanged. */
async function assertWhole(
  { objects }: SharedStores,
  { storage, cluster }: RunningMember,
): Promise<Set<string>> {
  await cluster.replica.catchUp();
  const { replica } = cluster;
  await until('no slot is outdated', () => replica.storedSlots.length === replica.slots.length);
  const files = new Set<string>();
  const { ids } = storage.index.query({});
  for (const tile of await storage.getTiles(ids))
    for (const { name, crc32 } of tile.groups) {
      const path = `tiles/geohash/${tile.geocode.slice(0, 3)}/${tile.geocode}/${tile.id}.${tile.version}/${name}.tif`;
      await objects.get(path, { crc32 });
      files.add(path);
    }
  for await (const model of storage.catalogue.models.values())
    for (const version of versionsOf(model))
      for (const { name, crc32 } of version.files) {
        const path = `models/${model.model}/${model.collection}/${model.grid}/${model.geocode}/${version.version}/${name}`;
        await objects.get(path, { crc32 });
        files.add(path);
      }
  return files;
}

const sweepOf = ({ cluster }: RunningMember, keepMs = 0) =>
  cluster.collectGarbage({ keepMs, minIntervalMs: 0 });

/** Writes a scene up to some point, and then behaves like a killed process: nothing is undone, and its lock expires. */
async function killedWrite(
  { storage }: RunningMember,
  scene: string,
  n: number,
  stage: 'stored' | 'staged',
): Promise<void> {
  const cells = cellsOf(n);
  const write = await storage.beginScene(COLLECTION, scene, cells);
  for (const geocode of cells) await stageTile(write, n, geocode);
  if (stage === 'stored') await write.publish(cells);
  await write.abort();
}

test('any sequence of writes, replacements, deletions and aborts, with garbage collection between all steps', async (t) => {
  const step = fc.record({
    kind: fc.constantFrom('scene', 'scene', 'derived', 'delete', 'killed', 'model', 'checkpoint'),
    scene: fc.nat(2),
    n: fc.nat(300),
    sweepAt: fc.nat(12),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 9 }), async (steps) => {
      const where = await sharedStores(t);
      let countdown = -1;
      let sweeping = false;
      let sweeper: RunningMember | undefined;
      const objects = hooked(where.objects, 'put', async () => {
        if (sweeping || countdown-- !== 0) return;
        sweeping = true;
        await sweepOf(sweeper!);
        sweeping = false;
      });
      const a = await startMember({ ...where, objects }, 'a');
      sweeper = a;
      await writeScene(a.storage, 'scene-0', 1);
      for (const { kind, scene, n, sweepAt } of steps) {
        countdown = sweepAt;
        if (kind === 'scene') await writeScene(a.storage, `scene-${scene}`, n);
        if (kind === 'derived') await writeDerived(a.storage, n);
        if (kind === 'delete' && (await a.storage.getScene(COLLECTION.id, `scene-${scene}`)))
          await a.storage.collections.deleteScene(COLLECTION.id, `scene-${scene}`);
        if (kind === 'killed') await killedWrite(a, `scene-${scene}`, n, n % 2 ? 'stored' : 'staged');
        if (kind === 'model') await putModel(a, n);
        if (kind === 'checkpoint') await writeLogCheckpoint(contextOf(where, a));
        countdown = -1;
        await assertWhole(where, a);
        await sweepOf(a);
        await assertWhole(where, a);
      }
      await assertTidy(where, a);
      await a.stop();
      // Everything can be read again.
      const b = await startMember(where, 'b');
      await until('b owns all', () => b.cluster.replica.slots.length === SLOTS);
      assert.deepEqual(
        await assertWhole(where, b),
        new Set([...(await names(where.objects, 'tiles/')), ...(await names(where.objects, 'models/'))]),
      );
      await b.stop();
    }),
    { seed: 42, numRuns: 5 },
  );
});

const contextOf = (
  { coordination, objects }: SharedStores,
  { cluster: { prefixLengths } }: RunningMember,
) => ({
  log: new CommitLog(coordination),
  objects,
  prefixLengths,
});

async function putModel({ storage }: RunningMember, n: number): Promise<void> {
  const { id: collection, grid } = COLLECTION;
  const place = { model: `m${n % 2}`, collection, grid, geocode: cellsOf(n)[0]!, version: newVersion() };
  await storage.models.put({ ...place, card: {} } as never, { 'weights.bin': bytesOf(n, 'w', 'w') });
}

/** Without work in progress, only referenced objects remain: files of records, the newest checkpoint, and the log after it. */
async function assertTidy(where: SharedStores, node: RunningMember): Promise<void> {
  await sweepOf(node);
  await sweepOf(node);
  const files = await assertWhole(where, node);
  const { objects, coordination } = where;
  assert.deepEqual(
    new Set([...(await names(objects, 'tiles/')), ...(await names(objects, 'models/'))]),
    files,
  );
  const checkpoint = await new CommitLog(coordination).readCheckpoint();
  const segments = segmentsOf(await readManifest(objects, checkpoint));
  assert.deepEqual((await names(objects, 'catalogue/parts/')).sort(), segments.sort());
  assert.deepEqual(await names(objects, 'catalogue/manifests/'), [checkpoint!.manifest]);
  assert.deepEqual(await names(objects, 'catalogue/log/'), []);
  assert.deepEqual(await names(objects, 'catalogue/segments/'), []);
  assert.equal((await names(objects, 'catalogue/sweeps/')).length, 1);
}

/** A write of derived tiles of two collections, ready to be committed. */
async function derivedOfTwo(storage: Storage): Promise<{ write: DerivedWrite; tiles: TileRecord[] }> {
  const [geocode] = cellsOf(1) as [string];
  const tiles: TileRecord[] = [];
  const write = await storage.beginDerived();
  for (const id of ['one', 'two']) {
    const scene = await storage.beginScene({ ...COLLECTION, id }, 's', [geocode]);
    await stageTile(scene, 1, geocode);
    await scene.publish([geocode]);
    await scene.commit(factsOf(1), [tileRecord(scene, 1, geocode)]);
    const tile = { id: `${id}_s_g${geocode}_filled`, grid: COLLECTION.grid, geocode };
    await write.plan([tile]);
    const folder = await write.stagingFolder(tile.id);
    for (const group of GROUPS)
      await writeFileSynced(join(folder, `${group}.tif`), bytesOf(1, geocode, group));
    tiles.push({ ...tileRecord(scene, 1, geocode), id: tile.id, version: write.version, source: 'filled' });
  }
  return { write, tiles };
}

test('garbage collection between the commits of one write keeps the files of the next commit', async (t) => {
  const where = await sharedStores(t);
  let isDue = false;
  // After a commit, the write acquires another lock for its next commit.
  const coordination = hooked(where.coordination, 'grantLease', async () => {
    if (!isDue) return;
    isDue = false;
    await sweepOf(b);
  });
  const a = await startMember({ ...where, coordination }, 'a');
  const b = await startMember(where, 'b');
  const { write, tiles } = await derivedOfTwo(a.storage);
  isDue = true;
  await write.commit(tiles);
  await write.close();
  assert.ok(!isDue);
  const files = await assertWhole(where, a);
  assert.equal(files.size, 4 * GROUPS.length);
});

test('garbage collection keeps tiles that a node hands over, until the write that they belong to ends', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  const b = await startMember(where, 'b');
  const [first, second] = cellsOf(1) as [string, string];
  const makePart = async (scene: string) => {
    const write = await a.storage.beginScene(COLLECTION, scene, [first, second]);
    const part = await b.storage.beginScenePart(write.collection, scene, [second], write.version);
    await stageTile(part, 1, second);
    const tiles = [tileRecord(part, 1, second)];
    await part.publish([second]);
    await part.handOver();
    await sweepOf(b);
    return { write, part: { version: part.version, tiles } };
  };
  const { write, part } = await makePart('s');
  await stageTile(write, 1, first);
  await write.publish([first]);
  await write.commit(factsOf(1), [tileRecord(write, 1, first)], [part]);
  await sweepOf(b);
  const files = await assertWhole(where, a);
  assert.equal(files.size, 2 * GROUPS.length);
  const { write: aborted } = await makePart('t');
  await aborted.abort();
  await sweepOf(b);
  assert.deepEqual(new Set(await names(where.objects, 'tiles/')), files);
});

test('a folder is imported while garbage is collected before each lock', async (t) => {
  const where = await sharedStores(t);
  const single = await Storage.open(join(where.folder, 'single'), { reserve: 0 });
  where.stops.push(() => single.close());
  const { write, tiles } = await derivedOfTwo(single);
  await write.commit(tiles);
  await write.close();
  const a = await startMember(where, 'a');
  let sweeps = 0;
  const coordination = hooked(where.coordination, 'grantLease', async () => {
    sweeps++;
    await sweepOf(a);
  });
  const { tiles: moved } = await importFolder({ ...where, storage: single, coordination });
  assert.deepEqual(moved, { moved: 4, present: 0 });
  assert.ok(sweeps > 4);
  const files = await assertWhole(where, a);
  assert.equal(files.size, 4 * GROUPS.length);
});

test('several nodes write and collect garbage at the same time', async (t) => {
  const where = await sharedStores(t);
  const nodes = await Promise.all(['a', 'b', 'c'].map((id) => startMember(where, id)));
  let isDone = false;
  const sweeps = (async () => {
    for (let i = 0; !isDone; i++) await sweepOf(nodes[i % 3]!, 86_400_000);
  })();
  await writeScene(nodes[0]!.storage, 'scene-0', 1);
  for (let round = 1; round <= 4; round++)
    await Promise.all([
      ...nodes.map((node, i) => writeScene(node.storage, `scene-${1 + i}`, 10 * round + i)),
      writeDerived(nodes[round % 3]!.storage, round),
      killedWrite(nodes[round % 3]!, 'scene-9', round, 'stored').catch((error) => {
        assert.equal(error.code, 'TW_DHT_CLAIMED');
      }),
    ]);
  isDone = true;
  await sweeps;
  for (const node of nodes) await assertWhole(where, node);
  // The last collection may have listed the objects before the last write was aborted.
  await sweepOf(nodes[0]!, 86_400_000);
  const before = await names(where.objects, 'tiles/');
  // Earlier versions of the last day still exist; aborted ones do not.
  assert.ok(!before.some((name) => name.includes('_scene-9_')));
  assert.ok(before.length > (await nodes[0]!.storage.stats()).tiles * 2);
  for (const node of nodes) assert.deepEqual(node.failures, []);
});

test('all nodes see the versions of a model, whichever node made or deleted them, and the store has them as long as they are kept', async (t) => {
  const where = await sharedStores(t);
  const [a, b] = await Promise.all(['a', 'b'].map((id) => startMember(where, id)));
  await writeScene(a!.storage, 'scene-0', 1);
  for (let i = 0; i < 7; i++) await putModel(i % 2 ? a! : b!, 1);
  const versions = async (node: RunningMember) => {
    await node.cluster.replica.catchUp();
    const { value } = await node.storage.catalogue.models.values().next();
    return value ? versionsOf(value) : [];
  };
  const made = await versions(a!);
  assert.equal(made.length, 5);
  assert.deepEqual(await versions(b!), made);
  assert.equal((await names(where.objects, 'models/')).length, 7);
  await assertTidy(where, a!);
  const [latest, second] = made;
  for (const { storage } of [a!, b!]) {
    await storage.models.ensureFile(second!, 'weights.bin');
    assert.deepEqual(await readFile(storage.models.path(second!, 'weights.bin')), bytesOf(1, 'w', 'w'));
  }
  assert.equal(await b!.storage.models.delete(latest!.id, latest!.version), 1);
  assert.deepEqual(await versions(a!), made.slice(1));
  await a!.storage.models.delete(latest!.id);
  assert.deepEqual(await versions(b!), []);
  await assert.rejects(b!.storage.models.delete(latest!.id), { code: 'TW_STORAGE_NO_MODEL' });
  await assertTidy(where, b!);
  assert.deepEqual(await names(where.objects, 'models/'), []);
});

test('garbage collection is refused if the log is behind the store, or the store belongs to another cluster', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  await writeScene(a.storage, 's', 7);
  const { cluster, coordination, log, objects, prefixLengths } = {
    cluster: a.cluster.id,
    ...where,
    ...contextOf(where, a),
  };
  const context = { cluster, coordination, log, objects, prefixLengths, keepMs: 0, minIntervalMs: 0 };
  await assert.rejects(collectObjectGarbage({ ...context, cluster: 'other' }), {
    code: 'TW_DHT_OTHER_CLUSTER',
  });
  const empty = await sharedStores(t);
  const behind = { ...context, coordination: empty.coordination, log: new CommitLog(empty.coordination) };
  await assert.rejects(collectObjectGarbage(behind), { code: 'TW_DHT_LOG_BEHIND_STORE' });
  await collectObjectGarbage(context);
  await assert.rejects(
    collectObjectGarbage(behind),
    { code: 'TW_DHT_LOG_BEHIND_STORE' },
    'even if the archive is missing',
  );
  assert.equal(
    await collectObjectGarbage({ ...context, minIntervalMs: 60_000 }),
    undefined,
    'not again so soon',
  );
});

test('garbage is collected in a store that was copied without its times, and a disconnected node catches up', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  const b = await startMember(where, 'b');
  for (let n = 1; n <= 5; n++) await writeScene(a.storage, `scene-${n}`, n);
  await b.cluster.replica.catchUp();
  await b.stop();
  // Garbage collection removes entries whose segments a lagging node would read.
  await writeScene(a.storage, 'scene-1', 6);
  // The first collection writes the checkpoint that is old for the second one.
  await sweepOf(a);
  await sweepOf(a);
  const behind = await startMember(where, 'b');
  await assertWhole(where, behind);
  assert.deepEqual(behind.failures, []);

  for (let n = 7; n <= 9; n++) await writeScene(a.storage, `scene-${n % 3}`, n);
  const folder = fileURLToPath(where.objects.url);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) await utimes(join(entry.parentPath, entry.name), new Date(), new Date());
  const report = await a.cluster.collectGarbage({ keepMs: 86_400_000, minIntervalMs: -60_000 });
  assert.ok(report!.listed > 0);
  await assertWhole(where, a);
  await assertTidy(where, a);
});

test('in a bucket as in a folder', { skip: s3SkipReason }, async (t) => {
  const s3 = await S3Server.start(t);
  setEnvironment(t, {
    ...CREDENTIALS,
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_ENDPOINT_URL_S3: s3.endpoint,
  });
  const objects = await openObjectStore(`s3://${BUCKET}/swept`);
  const where = { ...(await sharedStores(t)), objects };
  const a = await startMember(where, 'a');
  for (const n of [1, 2, 3]) await writeScene(a.storage, 'scene-0', n);
  await killedWrite(a, 'scene-1', 4, 'stored');
  await putModel(a, 1);
  await sweepOf(a, 86_400_000);
  const files = await assertWhole(where, a);
  const left = await names(objects, 'tiles/');
  assert.ok(left.length > files.size && !left.some((name) => name.includes('scene-1')));
  await assertTidy(where, a);
  assert.deepEqual(a.failures, []);
});
