/** Tiles made from others: whole or absent after kill -9, replaced as a whole, refused without their collection. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Storage, verify } from '../../src/storage/index.js';
import { bytesOf, COLLECTION, derivedIds, tempFolder, writeDerived, writeScene } from './sample-scenes.js';

const CHILD = fileURLToPath(new URL('./derived-child.js', import.meta.url));
const KILLS = 12;

/** Kills the writer a few milliseconds after it began a random step; the last batch that it acknowledged. */
async function runAndKill(dir: string, first: number): Promise<number> {
  const child = spawn(process.execPath, [CHILD, dir, `${first}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const step = ['plan', 'commit', 'commit', 'close', 'acknowledged'][randomInt(5)]!;
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

test('after kill -9 every derived tile is whole or absent, and what was acknowledged is there', async (t) => {
  const dir = await tempFolder(t);
  const first = await Storage.open(dir);
  await writeScene(first, 'scene-0', 0);
  await first.close();
  let acknowledged = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    acknowledged = await runAndKill(dir, acknowledged + 1);
    const storage = await Storage.open(dir, { sweepDelay: 20 });
    try {
      for await (const tile of storage.catalogue.tiles.values()) {
        if (tile.source === 'raw') continue;
        const n = Number(tile.derivedFrom[0]);
        assert.ok(n <= acknowledged + 1, `${tile.id} is of batch ${n}`);
        acknowledged = Math.max(n - 1, acknowledged);
        for (const { name } of tile.groups)
          assert.ok((await readFile(storage.tilePath(tile, name))).equals(bytesOf(n, tile.geocode, name)));
      }
      for (const id of acknowledged > 0 ? derivedIds(acknowledged) : [])
        assert.ok(Number((await storage.getTile(id))?.derivedFrom[0]) >= acknowledged, id);
      assert.deepEqual(
        (await readdir(dir, { recursive: true })).filter((file) => file.endsWith('.tmp')),
        [],
      );
      for await (const key of storage.catalogue.pending.keys()) assert.fail(`${key} is still pending`);
      const report = await verify(storage);
      assert.deepEqual([...report.problems, ...report.orphans], []);
    } finally {
      await storage.close();
    }
  }
  t.diagnostic(`${acknowledged} batches, ${KILLS} kills`);
});

test('a derived tile is deleted alone, survives its scene, and goes with its collection', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  t.after(() => storage.close());
  await assert.rejects(writeDerived(storage, 1), { code: 'TW_STORAGE_NO_COLLECTION' });
  await writeScene(storage, 'scene-0', 1);
  await writeDerived(storage, 1);
  const [gone, ...kept] = derivedIds(1);
  await storage.deleteTile(gone!);
  await storage.deleteScene(COLLECTION.id, 'scene-0');
  assert.equal(storage.index.size, kept.length);
  await writeScene(storage, 'scene-0', 4);
  await storage.deleteCollection(COLLECTION.id);
  assert.equal(storage.index.size, 0);
  await storage.sweep();
  assert.equal((await verify(storage)).problemCount, 0);
});

test('a write out of order is refused and leaves nothing', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  t.after(() => storage.close());
  await writeScene(storage, 'scene-0', 1);
  const write = storage.beginDerived();
  await assert.rejects(write.stagingFolder('x'), { code: 'TW_STORAGE_DERIVED_ORDER' });
  await write.plan([{ id: 'x', grid: 'geohash', geocode: '9q8yy' }]);
  await write.stagingFolder('x');
  await assert.rejects(write.stagingFolder('x'), { code: 'TW_STORAGE_DERIVED_ORDER' });
  await write.close();
  const report = await verify(storage);
  assert.deepEqual([report.problemCount, report.orphanCount], [0, 0]);
});
