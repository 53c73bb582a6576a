/** Nodes prefetch the tile files of their slots, stay within the limit, and fetch damaged files again. */
import assert from 'node:assert/strict';
import { readFile, stat, truncate, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { tileFile } from '../../src/storage/file-names.js';
import type { Storage, TileRecord } from '../../src/storage/index.js';
import { COLLECTION, cellsOf, writeScene } from '../storage/sample-scenes.js';
import { startMember, until } from './cluster-members.js';
import { sharedStores } from './shared-stores.js';

/** A restarted node keeps its slots. */
const STEADY = { gracePeriodMs: 60_000 };

async function tilesOf(storage: Storage): Promise<TileRecord[]> {
  return storage.getTiles(storage.index.query({}).ids);
}

async function isHere(storage: Storage, tile: TileRecord): Promise<boolean> {
  const sizes = tile.groups.map(async ({ name, bytes }) => {
    const info = await stat(storage.tileImage(tile, name).path).catch(() => undefined);
    return info?.size === bytes;
  });
  return (await Promise.all(sizes)).every((is) => is);
}

const all = async (storage: Storage) => {
  const tiles = await tilesOf(storage);
  return (
    tiles.length > 0 && (await Promise.all(tiles.map((tile) => isHere(storage, tile)))).every((is) => is)
  );
};

test('an owner fetches the files of its slots, from earlier and from new commits', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a', STEADY);
  for (const n of [1, 2, 3]) await writeScene(a.storage, `s${n}`, n);
  let b = await startMember(where, 'b', STEADY);
  await until('b has all', () => b.storage.index.size === a.storage.index.size);
  await until('b has the files', () => all(b.storage));
  await writeScene(a.storage, 's4', 4);
  await until(
    'b has the new ones',
    async () => b.storage.index.size === a.storage.index.size && all(b.storage),
  );
  const before = b.storage.cacheStats!;
  assert.ok(before.bytes > 0);
  assert.equal(before.misses, 0, 'nobody waited for them');

  // Possible results of a power cut: a truncated file, a file with other bytes, a missing file.
  const [cut, other, missing] = await tilesOf(b.storage);
  await b.stop();
  await truncate(b.storage.tileImage(cut!, '10m').path, 5);
  await writeFile(b.storage.tileImage(other!, '10m').path, Buffer.alloc(other!.groups[0]!.bytes));
  await unlink(b.storage.tileImage(missing!, 'mask').path);
  b = await startMember(where, 'b', STEADY);
  await until('b has the files again', async () => all(b.storage));
  for (const tile of await tilesOf(b.storage)) await b.storage.ensureFiles(tile, tile.groups);
  assert.ok(b.storage.cacheStats!.misses >= 1);
  for (const tile of await tilesOf(b.storage))
    for (const { name, crc32 } of tile.groups) {
      const file = `tiles/geohash/${tile.geocode.slice(0, 3)}/${tile.geocode}/${tile.id}.${tile.version}/${name}.tif`;
      assert.deepEqual(
        await readFile(b.storage.tileImage(tile, name).path),
        await where.objects.get(file, { crc32 }),
      );
    }
});

test('the limit holds; other files are fetched on demand; a lost object is named', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  for (const n of [31, 63, 95]) await writeScene(a.storage, `s${n}`, n);
  const b = await startMember(where, 'b', { cache: 10_000 });
  await until('b has all', () => b.storage.index.size === a.storage.index.size);
  await until('b has some', () => b.storage.cacheStats!.bytes > 3000);
  await sleep(100);
  assert.ok(b.storage.cacheStats!.bytes <= 10_000);
  for (const tile of await tilesOf(b.storage)) await b.storage.ensureFiles(tile, tile.groups);
  assert.ok(b.storage.cacheStats!.misses > 0);

  const [tile] = await tilesOf(b.storage);
  const name = `tiles/geohash/${tile!.geocode.slice(0, 3)}/${tile!.geocode}/${tile!.id}.${tile!.version}/10m.tif`;
  await where.objects.delete([name]);
  await unlink(b.storage.tileImage(tile!, '10m').path).catch(() => undefined);
  await assert.rejects(
    b.storage.ensureFiles(tile!, tile!.groups),
    (error: { code: string; message: string }) => {
      assert.equal(error.code, 'TW_STORE_LOST');
      assert.ok(error.message.includes(name) && error.message.includes(tile!.id));
      return true;
    },
  );
  const scene = (await b.storage.getScene(COLLECTION.id, tile!.scene))!;
  const intact = await b.storage.intactCells(scene, { ...COLLECTION, createdAt: 0 }, scene.geocodes);
  assert.deepEqual(
    intact,
    scene.geocodes.filter((geocode) => geocode !== tile!.geocode),
  );
  assert.ok(cellsOf(31).length > 1);
});

test('a prefetched file is verified before it is used', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  await writeScene(a.storage, 's1', 1);
  const [tile] = await tilesOf(a.storage);
  const object = join(where.folder, 'store', tileFile(tile!, '10m'));
  const bytes = await readFile(object);
  await writeFile(object, Buffer.alloc(bytes.length));
  const b = await startMember(where, 'b');
  await until('b has the files', () => all(b.storage));
  const bring = () => b.storage.ensureFiles(tile!, tile!.groups);
  await assert.rejects(bring, { code: 'TW_STORE_CORRUPT' });
  await writeFile(object, bytes);
  await bring();
  assert.deepEqual(await readFile(b.storage.tileImage(tile!, '10m').path), bytes);
});

test('a node knows whether it is writing', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  const write = await a.storage.beginScene(COLLECTION, 'slow', cellsOf(1));
  assert.equal(a.cluster.locks.heldCount, 1);
  await write.abort();
  assert.equal(a.cluster.locks.heldCount, 0);
});

test('a file of a model is fetched on demand', async (t) => {
  const where = await sharedStores(t);
  const a = await startMember(where, 'a');
  await writeScene(a.storage, 's1', 1);
  const b = await startMember(where, 'b');
  const { id: collection, grid } = COLLECTION;
  const place = { model: 'm', collection, grid, geocode: cellsOf(1)[0]!, version: 'v000001' };
  const { id } = await a.storage.models.put({ ...place, card: {} } as never, {
    'weights.bin': Buffer.from('weights'),
  });
  await b.cluster.replica.catchUp();
  const model = (await b.storage.models.get(id))!;
  await b.storage.models.ensureFile(model, 'weights.bin');
  const path = b.storage.models.path(model, 'weights.bin');
  assert.equal(await readFile(path, 'utf8'), 'weights');
  for (const damage of [() => writeFile(path, 'weighty'), () => writeFile(path, 'w'), () => unlink(path)]) {
    await damage();
    assert.equal(String(await b.storage.models.readFile(model, 'weights.bin')), 'weights');
    await damage();
    await b.storage.models.ensureFile(model, 'weights.bin');
    assert.equal(await readFile(path, 'utf8'), 'weights', 'a damaged copy is fetched again');
  }
});
