import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Storage, verify } from '../../src/storage/index.js';
import { bytesOf, COLLECTION, cellsOf, tempFolder } from './sample-scenes.js';

const CHILD = fileURLToPath(new URL('./crash-child.js', import.meta.url));
const KILLS = 14;

/** Runs the writer from delivery `first` on and kills it some time after its first acknowledgement. Returns the last. */
async function runAndKill(dir: string, first: number, afterMs: number): Promise<number> {
  const child = spawn(process.execPath, [CHILD, dir, `${first}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (text) => {
    if (out === '') setTimeout(() => child.kill('SIGKILL'), afterMs);
    out += text;
  });
  const signal = await new Promise((done) => child.on('close', (_, by) => done(by)));
  assert.equal(signal, 'SIGKILL', 'the writer must not end by itself');
  return Number(out.trim().split('\n').at(-1));
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

test('after kill -9 at any moment every acknowledged scene is whole and nothing half-written is left', async (t) => {
  const dir = await tempFolder(t);
  let acknowledged = -1;
  for (let kill = 0; kill < KILLS; kill++) {
    const first = acknowledged + 1;
    acknowledged = await runAndKill(dir, first, Math.random() * 200);
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
      const files = await readdir(dir, { recursive: true });
      assert.deepEqual(
        files.filter((file) => file.endsWith('.tmp')),
        [],
      );
      for await (const key of storage.catalogue.pending.keys()) assert.fail(`${key} is still pending`);
      const report = await verify(storage);
      assert.deepEqual(report.problems, []);
      assert.equal(report.tiles, storage.index.size);
      acknowledged = newest;
    } finally {
      await storage.close();
    }
  }
  t.diagnostic(`${acknowledged + 1} deliveries, ${KILLS} kills`);
});
