import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Storage, verify } from '../../src/storage/index.js';
import { assertIndexed } from './index-oracle.js';
import { bytesOf, COLLECTION, cellsOf, tempFolder } from './sample-scenes.js';

const CHILD = fileURLToPath(new URL('./crash-child.js', import.meta.url));
const KILLS = 25;

/**
 * Runs the writer from delivery `first` on and kills it a few milliseconds after it began a random step for a random
 * time. Returns the last delivery that it acknowledged, or `first` - 1.
 */
async function runAndKill(dir: string, first: number): Promise<number> {
  const child = spawn(process.execPath, [CHILD, dir, `${first}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const step = ['begin', 'publish', 'commit', 'commit', 'acknowledged'][randomInt(5)]!;
  let steps = randomInt(1, 5);
  let acknowledged = first - 1;
  createInterface(child.stdout).on('line', (line) => {
    if (line.startsWith('acknowledged')) acknowledged = Number(line.split(' ')[1]);
    if (line.startsWith(step) && --steps === 0) setTimeout(() => child.kill('SIGKILL'), randomInt(8));
  });
  const signal = await new Promise((done) => child.on('close', (_, by) => done(by)));
  assert.equal(signal, 'SIGKILL', 'the writer must not end by itself');
  return acknowledged;
}

async function assertWhole(storage: Storage, scene: string, acknowledged: number): Promise<void> {
  const record = await storage.getScene(COLLECTION.id, scene);
  assert.ok(record, `${scene} was acknowledged`);
  const n = Number(record.fingerprint);
  // The delivery that was in flight may have become durable without its acknowledgement.
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
      assert.ok((await readFile(storage.tilePath(tile, name))).equals(bytesOf(n, tile.geocode, name)));
  }
}

/** All that is below a folder, though the sweeper removes some of it meanwhile. */
async function filesBelow(dir: string): Promise<string[]> {
  try {
    return await readdir(dir, { recursive: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return filesBelow(dir);
  }
}

test('after kill -9 at any moment every acknowledged scene is whole and nothing half-written is left', async (t) => {
  const dir = await tempFolder(t);
  let acknowledged = -1;
  const loads = { snapshot: 0, catalogue: 0 };
  for (let kill = 0; kill < KILLS; kill++) {
    const first = acknowledged + 1;
    acknowledged = await runAndKill(dir, first);
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
      // Without a snapshot at the end, so that the next start has what the killed writer has left.
      if (kill % 3 > 0) await rename(join(dir, 'columns'), join(dir, 'kept'));
      await storage.close();
      if (kill % 3 > 0) await rename(join(dir, 'kept'), join(dir, 'columns'));
    }
  }
  assert.ok(loads.snapshot > KILLS / 2, JSON.stringify(loads));
  t.diagnostic(`${acknowledged + 1} deliveries, ${KILLS} kills, index loaded from ${JSON.stringify(loads)}`);
});
