import assert from 'node:assert/strict';
import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Storage, verify } from '../../../src/storage/index.js';
import { assertIndexed } from '../column-index/index-oracle.js';
import { runAndKill } from '../kill-writer.js';
import { bytesOf, COLLECTION, cellsOf, tempFolder } from '../sample-scenes.js';

const CHILD = fileURLToPath(new URL('./crash-child.js', import.meta.url));
const KILLS = 25;
const STEPS = ['begin', 'publish', 'commit', 'commit', 'acknowledged'];

async function assertWhole(storage: Storage, scene: string, acknowledged: number): Promise<void> {
  const record = await storage.getScene(COLLECTION.id, scene);
  assert.ok(record, `${scene} was acknowledged`);
  const n = Number(record.fingerprint);
  // The delivery in progress may have become durable without its acknowledgement.
  assert.ok(
    n === acknowledged || n === acknowledged + 3,
    `${scene}: ${n} on disk, ${acknowledged} acknowledged`,
  );
  assert.deepEqual(record.geocodes, cellsOf(n).sort());
  const ids = record.geocodes.map((geocode) => `${COLLECTION.id}_${scene}_g${geocode}`);
  const tiles = await storage.getTiles(ids);
  assert.deepEqual(
    tiles.map((tile) => tile.id),
    ids,
  );
  for (const tile of tiles) {
    assert.equal(tile.version, record.version);
    for (const { name } of tile.groups)
      assert.ok((await readFile(storage.tileImage(tile, name).path)).equals(bytesOf(n, tile.geocode, name)));
  }
}

/** All entries below a folder, even if garbage collection removes some at the same time. */
async function filesBelow(dir: string): Promise<string[]> {
  try {
    return await readdir(dir, { recursive: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return filesBelow(dir);
  }
}

test('after kill -9 at any moment every acknowledged scene is complete and no partial one is left', async (t) => {
  const dir = await tempFolder(t);
  let acknowledged = -1;
  const loads = { snapshot: 0, catalogue: 0 };
  for (let kill = 0; kill < KILLS; kill++) {
    const first = acknowledged + 1;
    acknowledged = await runAndKill(CHILD, STEPS, dir, first);
    const storage = await Storage.open(dir, { sweepDelay: 20 });
    try {
      let tiles = 0;
      let newest = acknowledged;
      for (let scene = 0; scene < Math.min(3, acknowledged + 1); scene++) {
        const last = acknowledged - ((acknowledged - scene) % 3);
        await assertWhole(storage, `scene-${scene}`, last);
        const record = await storage.getScene(COLLECTION.id, `scene-${scene}`);
        newest = Math.max(newest, Number(record!.fingerprint));
        tiles += record!.geocodes.length;
      }
      if (acknowledged >= 2)
        assert.equal(storage.index.size, tiles, 'no tile of another scene is searchable');
      const files = await filesBelow(dir);
      assert.deepEqual(
        files.filter((file) => file.endsWith('.tmp')),
        [],
      );
      for await (const key of storage.catalogue.pending.keys()) assert.fail(`${key} is still pending`);
      const report = await verify(storage);
      assert.deepEqual([...report.problems, ...report.orphans], []);
      assert.equal(report.tiles, storage.index.size);
      assert.equal(storage.indexLoad.reason, undefined);
      loads[storage.indexLoad.from]++;
      await assertIndexed(storage);
      acknowledged = newest;
    } finally {
      // Without a snapshot at the end, so that the next start loads what the killed writer has left.
      if (kill % 3 > 0) await rename(join(dir, 'columns'), join(dir, 'kept'));
      await storage.close();
      if (kill % 3 > 0) await rename(join(dir, 'kept'), join(dir, 'columns'));
    }
  }
  assert.ok(loads.snapshot > KILLS / 2, JSON.stringify(loads));
  t.diagnostic(`${acknowledged + 1} deliveries, ${KILLS} kills, index loaded from ${JSON.stringify(loads)}`);
});
