/** A scene that another node ingests after this node has looked for it is not ingested again. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ClusterLockManager } from '../../src/dht/log/locks.js';
import { CommitLog } from '../../src/dht/log/log.js';
import { Replica } from '../../src/dht/replica.js';
import { DEFAULT_PREFIX_LENGTHS as prefixLengths, SLOTS } from '../../src/dht/slots.js';
import { SharedMemory } from '../../src/ingest/cut/memory.js';
import { IngestPool } from '../../src/ingest/cut/pool.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { planSceneTiles } from '../../src/ingest/plan.js';
import { type IngestContext, ingestScene } from '../../src/ingest/scene-tiles.js';
import { Storage, versionOfFolder } from '../../src/storage/index.js';
import { writeTestScene } from '../support/scenes.js';
import { sharedStores } from './shared-stores.js';

test('a scene that two nodes ingest is stored once', async (t) => {
  const { folder, objects, coordination, stops } = await sharedStores(t);
  const pool = new IngestPool(1, 256e6);
  stops.push(() => pool.close());
  const options = { collection: 'made-up', datetime: '2024-06-01T10:00:00Z', precision: 6 };
  const [scene] = await describeScenes(await writeTestScene(join(folder, 'scene.tif'), { seed: 1 }), options);
  const log = new CommitLog(coordination);
  const nodes: { context: IngestContext; storage: Storage }[] = [];
  for (const id of ['a', 'b']) {
    const storage = await Storage.open(join(folder, id), { reserve: 0 });
    // It does not follow the log, like a node that lags slightly behind.
    const replica = await Replica.open({ storage, objects, log, cluster: 'c', prefixLengths });
    stops.push(async () => {
      await replica.close();
      await storage.close();
    });
    const shared = { storage, coordination, log, objects, replica, prefixLengths };
    storage.enterCluster(new ClusterLockManager({ ...shared, ownerLabel: id }), objects);
    await replica.loadSlots(Array.from({ length: SLOTS }, (_, slot) => slot));
    if (id === 'a') replica.start();
    const context = {
      storage,
      pool,
      memory: new SharedMemory(64e6),
      cloudModel: undefined,
      digests: new Map(),
    };
    nodes.push({ context, storage });
  }
  // Both nodes have looked for the scene before either of them has stored it.
  const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
  const plans = await Promise.all([a, b].map(({ storage }) => planSceneTiles(storage, scene!, options)));
  const first = await ingestScene(a.context, plans[0]!, options);
  assert.equal(first.unchanged, false);
  const second = await ingestScene(b.context, plans[1]!, options);
  assert.equal(second.unchanged, true);
  assert.equal(second.tiles, first.tiles);
  assert.equal((await log.bounds()).head, 1);
  const versions = new Set<string>();
  for await (const { name } of objects.list('tiles/'))
    versions.add(versionOfFolder(name.slice(0, name.lastIndexOf('/'))));
  assert.equal(versions.size, 1);
  // The lock was released.
  assert.equal((await ingestScene(b.context, plans[1]!, options)).unchanged, true);

  // A job that another node has taken over ends after one that was accepted later.
  await mkdir(join(folder, 'newer'));
  const newer = await writeTestScene(join(folder, 'newer', 'scene.tif'), { seed: 2 });
  const ingestAs = async (path: string, job: string) => {
    const [described] = await describeScenes(path, options);
    return ingestScene(b.context, await planSceneTiles(b.storage, described!, options), options, { job });
  };
  const older = join(folder, 'scene.tif');
  const later = await ingestAs(newer, '2');
  assert.deepEqual([later.unchanged, later.replaced], [false, true]);
  const versionOf = async () => (await b.storage.getScene('made-up', scene!.id))!.version;
  const version = await versionOf();
  const earlier = await ingestAs(older, '1');
  assert.deepEqual([earlier.unchanged, earlier.tiles], [true, later.tiles]);
  assert.match(earlier.warnings.join(), /it stays as job 2 has delivered it/);
  assert.equal(await versionOf(), version);
  const repeated = await ingestAs(newer, '1');
  assert.deepEqual([repeated.unchanged, repeated.warnings], [true, later.warnings]);
  assert.equal((await ingestAs(older, '3')).replaced, true);
});
