/** Derived tiles: complete or absent after kill -9, replaced atomically, refused without their collection. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Storage, verify } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { runAndKill } from '../kill-writer.js';
import { bytesOf, COLLECTION, derivedIds, tempFolder, writeDerived, writeScene } from '../sample-scenes.js';

const CHILD = fileURLToPath(new URL('./derived-child.js', import.meta.url));
const KILLS = 12;
const STEPS = ['plan', 'commit', 'commit', 'close', 'acknowledged'];

test('after kill -9 every derived tile is complete or absent, and acknowledged ones are present', async (t) => {
  const dir = await tempFolder(t);
  const first = await Storage.open(dir);
  await writeScene(first, 'scene-0', 0);
  await first.close();
  let acknowledged = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    acknowledged = await runAndKill(CHILD, STEPS, dir, acknowledged + 1);
    const storage = await Storage.open(dir, { sweepDelay: 20 });
    try {
      for await (const tile of storage.catalogue.tiles.values()) {
        if (tile.source === 'raw') continue;
        const n = Number(tile.derivedFrom[0]);
        assert.ok(n <= acknowledged + 1, `${tile.id} is of batch ${n}`);
        acknowledged = Math.max(n - 1, acknowledged);
        for (const { name } of tile.groups)
          assert.ok(
            (await readFile(storage.tileImage(tile, name).path)).equals(bytesOf(n, tile.geocode, name)),
          );
      }
      for (const id of acknowledged > 0 ? derivedIds(acknowledged) : [])
        assert.ok(Number((await storage.catalogue.tiles.get(id))?.derivedFrom[0]) >= acknowledged, id);
      for await (const key of storage.catalogue.pending.keys()) assert.fail(`${key} is still pending`);
      const report = await verify(storage);
      assert.deepEqual([...report.problems, ...report.orphans], []);
    } finally {
      await storage.close();
    }
    // After close: while the folder is open, garbage collection may remove listed entries.
    const files = await readdir(dir, { recursive: true });
    assert.deepEqual(
      files.filter((file) => file.endsWith('.tmp')),
      [],
    );
  }
  t.diagnostic(`${acknowledged} batches, ${KILLS} kills`);
});

test('a derived tile is deleted alone, survives its scene, and is deleted with its collection', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  await assert.rejects(writeDerived(storage, 1), { code: 'TW_STORAGE_NO_COLLECTION' });
  await writeScene(storage, 'scene-0', 1);
  await writeDerived(storage, 1);
  const [gone, ...kept] = derivedIds(1);
  await storage.collections.deleteTile(gone!);
  await storage.collections.deleteScene(COLLECTION.id, 'scene-0');
  assert.equal(storage.index.size, kept.length);
  await writeScene(storage, 'scene-0', 4);
  await storage.collections.delete(COLLECTION.id);
  assert.equal(storage.index.size, 0);
  await storage.collectOldVersions();
  assert.equal((await verify(storage)).problemCount, 0);
});

test('a write out of order is refused and leaves nothing', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  await writeScene(storage, 'scene-0', 1);
  const write = await storage.beginDerived();
  await assert.rejects(write.stagingFolder('x'), { code: 'TW_STORAGE_DERIVED_ORDER' });
  await write.plan([{ id: 'x', grid: 'geohash', geocode: '9q8yy' }]);
  await write.stagingFolder('x');
  await assert.rejects(write.stagingFolder('x'), { code: 'TW_STORAGE_DERIVED_ORDER' });
  await write.close();
  const report = await verify(storage);
  assert.deepEqual([report.problemCount, report.orphanCount], [0, 0]);
});

test('an obsolete tile is removed unless another version has replaced it', async (t) => {
  const storage = await Storage.open(await tempFolder(t), { reserve: 0 });
  atEnd(t, () => storage.close());
  await writeScene(storage, 'scene-0', 1);
  await writeDerived(storage, 1);
  const [id] = derivedIds(1);
  const old = await storage.catalogue.tiles.get(id!);
  await writeDerived(storage, 1);
  const current = await storage.catalogue.tiles.get(id!);
  assert.notEqual(current!.version, old!.version);
  const write = await storage.beginDerived();
  assert.equal(await write.commit([], [old!]), 0);
  assert.deepEqual(await storage.catalogue.tiles.get(id!), current);
  assert.equal(await write.commit([], [current!]), 1);
  assert.equal(await storage.catalogue.tiles.get(id!), undefined);
  await write.close();
  await storage.collectOldVersions();
  assert.equal((await verify(storage)).problemCount, 0);
});
