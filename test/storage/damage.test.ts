import assert from 'node:assert/strict';
import { mkdir, open, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { Level } from 'level';
import { decodeRecord, encodeRecord } from '../../src/storage/catalogue.js';
import { newVersion, Storage, type TileRecord, verify } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { damageRecords } from '../support/damage.js';
import { storageProblems } from '../support/storage-problems.js';
import { COLLECTION, cellsOf, stageTile, tempFolder, writeScene } from './sample-scenes.js';

async function flipByte(file: string, at: number): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    const byte = Buffer.alloc(1);
    await handle.read(byte, 0, 1, at);
    byte[0]! ^= 0x10;
    await handle.write(byte, 0, 1, at);
  } finally {
    await handle.close();
  }
}

async function folderWithScenes(dir: string, scenes: Record<string, number>): Promise<void> {
  const storage = await Storage.open(dir);
  for (const [scene, n] of Object.entries(scenes)) await writeScene(storage, scene, n);
  await storage.close();
}

const tileKey = (scene: string, n: number, i = 0) => `${COLLECTION.id}_${scene}_g${cellsOf(n)[i]}`;

test('any flipped bit of a stored record, or another key, is detected', () => {
  const key = fc.string({ unit: 'grapheme-ascii', minLength: 1 });
  fc.assert(
    fc.property(key, fc.jsonValue(), fc.nat(), fc.nat(7), key, (k, record, at, bit, other) => {
      const bytes = encodeRecord(k, record);
      assert.deepEqual(decodeRecord('t', k, bytes), JSON.parse(JSON.stringify(record)));
      if (other !== k) assert.throws(() => decodeRecord('t', other, bytes), { code: 'TW_STORAGE_CORRUPT' });
      bytes[at % bytes.length]! ^= 1 << bit;
      assert.throws(() => decodeRecord('t', k, bytes), { code: 'TW_STORAGE_CORRUPT' });
    }),
    { seed: 42 },
  );
});

test('verify lists a flipped, a truncated, a lost and an unknown file', async (t) => {
  const dir = await tempFolder(t);
  await folderWithScenes(dir, { a: 7, b: 7 });
  const storage = await Storage.open(dir);
  atEnd(t, () => storage.close());
  assert.ok(cellsOf(7).length >= 2);
  const tiles = await storage.getTiles([tileKey('a', 7), tileKey('a', 7, 1), tileKey('b', 7)]);
  const paths = tiles.map((tile) => storage.tileImage(tile, '10m').path);
  await flipByte(paths[0]!, 40);
  await truncate(paths[1]!, 31);
  await rm(paths[2]!);
  await writeFile(join(dir, 'tiles/geohash/stray.txt'), 'x');
  await writeFile(join(dirname(paths[2]!), 'stray.tif'), 'x');
  await mkdir(join(dir, 'tiles/geohash/9q8/9q8yy/no-such-tile.000000/deeper'), { recursive: true });
  await writeFile(join(dir, 'tiles/geohash/9q8/9q8yy/no-such-tile.000000/deeper/a'), 'twelve bytes');
  await mkdir(join(dir, 'models/ndvi/sentinel-2-l2a/geohash/9q8yy/000000.tmp'), { recursive: true });

  let last = { tiles: 0, files: 0, bytes: 0 };
  const report = await verify(storage, (progress) => {
    last = progress;
  });
  const relative = (path: string) => path.slice(dir.length + 1);
  assert.deepEqual(
    new Set(report.problems.map(({ kind, what }) => `${kind} ${what}`)),
    new Set([
      `checksum ${relative(paths[0]!)}`,
      `size ${relative(paths[1]!)}`,
      `missing ${relative(paths[2]!)}`,
    ]),
  );
  assert.equal(report.problemCount, 3);
  assert.deepEqual(
    new Set(report.orphans.map(({ path, bytes }) => `${path} ${bytes}`)),
    new Set([
      'tiles/geohash/stray.txt 1',
      `${relative(join(dirname(paths[2]!), 'stray.tif'))} 1`,
      'tiles/geohash/9q8/9q8yy/no-such-tile.000000 12',
      'models/ndvi/sentinel-2-l2a/geohash/9q8yy/000000.tmp 0',
    ]),
  );
  assert.deepEqual([report.orphanCount, report.orphanBytes], [4, 14]);
  assert.equal(report.tiles, 2 * cellsOf(7).length);
  const { tiles: seen, files, bytes } = report;
  assert.deepEqual({ tiles: seen, files, bytes }, last);
});

test('a flipped byte in a record is detected, the rest remains usable, and the scene can be delivered again', async (t) => {
  const dir = await tempFolder(t);
  await folderWithScenes(dir, { a: 7, b: 7 });
  await damageRecords(dir, `!tiles!${tileKey('a', 7)}`, `!scenes!${COLLECTION.id}/b`);

  const storage = await Storage.open(dir);
  atEnd(t, () => storage.close());
  // The snapshot of the index still has the tile, until it is read.
  assert.equal(storage.indexLoad.from, 'snapshot');
  const ids = [tileKey('a', 7), tileKey('a', 7, 1)];
  assert.deepEqual(
    (await storage.getTiles(ids)).map((tile) => tile.id),
    [ids[1]],
  );
  assert.equal(storage.damaged.length, 1);
  assert.match(storage.damaged[0]!.message, new RegExp(tileKey('a', 7)));
  assert.equal(storage.index.size, 2 * cellsOf(7).length - 1);
  const corrupt = { code: 'TW_STORAGE_CORRUPT' };
  await assert.rejects(storage.catalogue.tiles.get(tileKey('a', 7)), {
    ...corrupt,
    message: new RegExp(tileKey('a', 7)),
  });
  await assert.rejects(storage.getScene(COLLECTION.id, 'b'), corrupt);
  const found = (await verify(storage)).problems.map(({ kind, what }) => `${kind} ${what}`);
  assert.ok(found.includes(`corrupt-record tiles ${tileKey('a', 7)}`));
  assert.ok(found.includes(`missing tiles ${tileKey('a', 7)}`));
  assert.ok(found.includes(`corrupt-record scenes ${COLLECTION.id}/b`));
  assert.ok(found.includes(`no-scene tiles ${tileKey('b', 7)}`));

  await writeScene(storage, 'a', 8);
  await writeScene(storage, 'b', 8);
  assert.deepEqual(await storageProblems(storage), []);
  assert.equal(storage.index.size, 2 * cellsOf(8).length);
  assert.deepEqual(storage.damaged, []);
});

test('no flipped byte in a table file of LevelDB is returned as an intact record', async (t) => {
  const dir = await tempFolder(t);
  await folderWithScenes(dir, Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`s${i}`, i])));
  const catalogue = join(dir, 'catalogue');
  const db = new Level<string, Buffer>(catalogue, { valueEncoding: 'buffer' });
  await db.open();
  // Opening moves the log into a table file.
  await db.close();
  const sound = new Map<string, TileRecord>();
  const before = await Storage.open(dir);
  for await (const tile of before.catalogue.tiles.values()) sound.set(tile.id, tile);
  await before.close();
  const tables = (await readdir(catalogue)).filter((name) => name.endsWith('.ldb'));
  assert.ok(sound.size > 20 && tables.length > 0);
  const file = join(catalogue, tables.at(-1)!);
  const original = await readFile(file);

  let found = 0;
  for (let i = 1; i < 12; i++) {
    const at = Math.floor((original.length * i) / 12);
    await flipByte(file, at);
    let storage: Storage | undefined;
    try {
      storage = await Storage.open(dir);
      for (const key of sound.keys()) {
        const tile = await storage.catalogue.tiles.get(key);
        if (tile) assert.deepEqual(tile, sound.get(key));
      }
      if ((await verify(storage)).problemCount > 0) found++;
    } catch (error) {
      // LevelDB may detect the damage when it compacts.
      assert.match((error as { code?: string }).code!, /^TW_STORAGE_(CORRUPT|DAMAGED)$/);
      found++;
    } finally {
      await storage?.close();
    }
    await rm(join(dir, 'damaged'), { force: true });
    await writeFile(file, original);
  }
  assert.ok(found > 0, 'some of the flipped bytes hit a record');
});

test('verify lists a lost folder, a lost record, a lost model file and a tile without a scene', async (t) => {
  const dir = await tempFolder(t);
  await folderWithScenes(dir, { a: 7, b: 7, c: 7, d: 7 });
  const storage = await Storage.open(dir);
  atEnd(t, () => storage.close());
  const { catalogue } = storage;
  const model = await storage.models.put(
    {
      model: 'ndvi',
      collection: COLLECTION.id,
      grid: 'geohash',
      geocode: '9q8yy',
      version: newVersion(),
      card: {},
    },
    { 'weights.bin': Buffer.alloc(100) },
  );
  await rm(storage.models.path(model, 'weights.bin'));
  const [a, b] = await storage.getTiles([tileKey('a', 7), tileKey('b', 7)]);
  await rm(dirname(storage.tileImage(a!, '10m').path), { recursive: true });
  await catalogue.write([catalogue.tiles.delete(b!.id)]);
  await catalogue.write([catalogue.scenes.delete(`${COLLECTION.id}/c`)]);
  const { problems, orphans } = await verify(storage);
  const relative = (path: string) => path.slice(dir.length + 1);
  assert.deepEqual(
    new Set(problems.map(({ kind, what }) => `${kind} ${what}`)),
    new Set([
      `missing ${relative(storage.models.path(model, 'weights.bin'))}`,
      ...a!.groups.map(({ name }) => `missing ${relative(storage.tileImage(a!, name).path)}`),
      `missing tiles ${b!.id}`,
      `index tiles ${b!.id}`,
      ...cellsOf(7).map((_, i) => `no-scene tiles ${tileKey('c', 7, i)}`),
    ]),
  );
  const bytes = b!.groups.reduce((sum, group) => sum + group.bytes, 0);
  assert.deepEqual(orphans, [{ path: relative(dirname(storage.tileImage(b!, '10m').path)), bytes }]);
});

test('verify reports nothing while scenes are written, replaced, deleted, undone and garbage-collected', async (t) => {
  const storage = await Storage.open(await tempFolder(t), { sweepDelay: 0 });
  atEnd(t, () => storage.close());
  let busy = true;
  const work = async () => {
    for (let n = 0; n < 60; n++) {
      const scene = `s${n % 3}`;
      await writeScene(storage, scene, n);
      if (n % 4 === 0) await storage.collections.deleteScene(COLLECTION.id, scene);
      const write = await storage.beginScene(COLLECTION, 'undone', cellsOf(n));
      await stageTile(write, n, cellsOf(n)[0]!);
      if (n % 2) await write.publish([cellsOf(n)[0]!]);
      await write.abort();
      await storage.collectOldVersions();
    }
    busy = false;
  };
  const working = work();
  let runs = 0;
  for (; busy; runs++) {
    assert.deepEqual(await storageProblems(storage), []);
  }
  await working;
  assert.ok(runs > 1);
});

test('a version that is garbage-collected while verify checks it is neither missing nor an orphan', async (t) => {
  const storage = await Storage.open(await tempFolder(t), { sweepDelay: 3_600_000 });
  atEnd(t, () => storage.close());
  const { catalogue, dir } = storage;
  for (const table of [catalogue.pending, catalogue.superseded]) {
    await writeScene(storage, 'a', 7);
    await writeScene(storage, 'a', 7);
    const has = table.has.bind(table);
    let swept = 0;
    // Garbage collection runs during the lookup, as it would in another turn of the event loop.
    table.has = async (path) => {
      if (await catalogue.superseded.get(path)) {
        await rm(join(dir, path), { recursive: true });
        await catalogue.write([catalogue.superseded.delete(path)]);
        swept++;
      }
      return has(path);
    };
    assert.deepEqual(await storageProblems(storage), []);
    assert.ok(swept > 0);
    table.has = has;
  }
});
