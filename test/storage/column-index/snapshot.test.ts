/** The index is loaded from its snapshot, as the catalogue is now, or from the catalogue. */
import assert from 'node:assert/strict';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { UnusableFile, writeParts } from '../../../src/storage/column-index/parts-file.js';
import { SnapshotFolder } from '../../../src/storage/column-index/snapshot.js';
import { ColumnIndex, Storage, type TileRecord, verify } from '../../../src/storage/index.js';
import { tile, tiles } from '../../query/tiles.js';
import { atEnd } from '../../support/at-end.js';
import { storageProblems } from '../../support/storage-problems.js';
import { COLLECTION, cellsOf, tempFolder, writeScene } from '../sample-scenes.js';
import { assertIndexed } from './index-oracle.js';
import { folderWithLog, inCatalogue, reopened, rowsOf, snapshotOf } from './snapshot-folders.js';

const stamp = { sequence: 7, tag: 'x', damaged: [] };
const NAME = '000000000007.snap';

test('any index is restored from its files as it was when the images were made', async (t) => {
  const folder = await tempFolder(t);
  const all = fc.uniqueArray(tiles, { maxLength: 60, selector: (record) => record.id });
  await fc.assert(
    fc.asyncProperty(all, fc.nat(60), fc.array(fc.nat(60)), all, async (records, tail, gone, later) => {
      const odd = records
        .slice(0, 9)
        .map((record, i) => ({ ...record, id: `${record.id}${i % 2 ? '_x-1' : 'y'}` }));
      const present = new Map(
        [...records, ...odd].map((record): [string, TileRecord] => [record.id, record]),
      );
      const index = new ColumnIndex();
      index.load([...present.values()].slice(tail));
      index.add([...present.values()].slice(0, tail));
      for (const id of gone.map((pick) => records[pick]?.id ?? 'none')) {
        index.remove([id]);
        present.delete(id);
      }
      const expected = index.query({});
      const images = index.images();
      // Later changes are not in the images.
      index.add(later.map((record) => ({ ...record, start: 1 })));
      index.remove(records.slice(0, 5).map((record) => record.id));
      await new SnapshotFolder(folder).write(images, stamp);
      const found = await new SnapshotFolder(folder).read(NAME);
      assert.deepEqual(found.header, stamp);
      const restored = new ColumnIndex();
      restored.restore(found.images);
      assert.deepEqual(restored.query({}), expected);
      for (const record of present.values()) assert.ok(restored.agrees(record));
      // It can be changed like any other.
      restored.add(later);
      for (const record of later) present.set(record.id, record);
      restored.compactTail();
      assert.equal(restored.size, present.size);
      for (const record of present.values()) assert.ok(restored.agrees(record));
    }),
    { seed: 42, numRuns: 40 },
  );
});

test('no snapshot with a flipped byte or of another length is used', async (t) => {
  const folder = await tempFolder(t);
  const snapshots = new SnapshotFolder(folder);
  const index = new ColumnIndex();
  index.load(Array.from({ length: 5 }, (_, i) => tile({ scene: `s${i}`, start: i })));
  index.add([tile({ id: 'odd' })]);
  await snapshots.write(index.images(), stamp);
  const names = await readdir(folder);
  assert.equal(names.length, 3);
  for (const name of names) {
    const path = join(folder, name);
    const sound = await readFile(path);
    let harmless = 0;
    for (let at = 0; at < sound.length; at += 1 + (at % 5)) {
      const bytes = Buffer.from(sound);
      bytes[at]! ^= 1 << (at % 8);
      await writeFile(path, bytes);
      const found = await snapshots.read(NAME).catch((error) => {
        assert.ok(error instanceof UnusableFile);
      });
      if (!found) continue;
      harmless++;
      const restored = new ColumnIndex();
      restored.restore(found.images);
      assert.deepEqual(restored.query({}), index.query({}), `byte ${at}`);
    }
    assert.ok(harmless < sound.length / 4, `${harmless} of ${sound.length} bytes are only there to fill up`);
    for (const length of [0, 3, 15, 16, 100, sound.length >> 1, sound.length - 8]) {
      await writeFile(path, sound.subarray(0, length));
      await assert.rejects(snapshots.read(NAME), UnusableFile, `${length} bytes`);
    }
    await rm(path);
    await assert.rejects(snapshots.read(NAME), UnusableFile);
    await writeFile(path, sound);
  }
});

test('an unchanged run is not written again', async (t) => {
  const folder = await tempFolder(t);
  const index = new ColumnIndex({ maxTailRows: 4, rowsPerStep: 4 });
  const tilesOf = (round: number, count: number) =>
    Array.from({ length: count }, (_, i) => tile({ scene: `r${round}-${i}`, start: i }));
  index.load(tilesOf(0, 100));
  await new SnapshotFolder(folder).write(index.images(), { ...stamp, sequence: 1 });
  const [first] = (await readdir(folder)).filter((name) => name.endsWith('.rows'));

  const snapshots = new SnapshotFolder(folder);
  const found = await snapshots.read('000000000001.snap');
  index.restore(found.images);
  index.add(tilesOf(1, 6));
  await index.compact();
  index.remove([tilesOf(0, 1)[0]!.id]);
  index.add(tilesOf(2, 2));
  const images = index.images();
  assert.deepEqual(
    images.map(({ rows }) => rows),
    [100, 6, 2],
  );
  assert.ok(snapshots.bytesToWrite(images) < 1000);
  const { ino } = await stat(join(folder, first!));
  for (const sequence of [2, 3]) {
    await snapshots.write(index.images(), { ...stamp, sequence });
    const names = await readdir(folder);
    assert.equal(names.length, 4, names.join());
    assert.equal((await stat(join(folder, first!))).ino, ino);
    const last = await new SnapshotFolder(folder).read(`00000000000${sequence}.snap`);
    const restored = new ColumnIndex();
    restored.restore(last.images);
    assert.deepEqual(restored.query({}), index.query({}));
    // The tail is another run of the same columns now.
    index.add(tilesOf(3, 1));
  }
});

test('a start loads the snapshot and the commits since', async (t) => {
  const dir = await folderWithLog(t);
  assert.deepEqual(await reopened(dir), { from: 'snapshot', reason: undefined });
  const storage = await Storage.open(dir);
  assert.deepEqual(await storageProblems(storage), []);
  await storage.close();
  // A clean end leaves one snapshot and the record of its commit.
  const last = await Storage.open(dir);
  const keys: string[] = [];
  for await (const key of last.catalogue.commits.keys()) keys.push(key);
  assert.equal(`${keys.join()}.snap`, (await snapshotOf(dir)).split('/').at(-1));
  await last.close();
});

test('snapshots are written while scenes arrive, and remove their part of the log', async (t) => {
  const dir = join(await tempFolder(t), 'data');
  const storage = await Storage.open(dir, { snapshotAfter: 10 });
  for (let n = 0; n < 30; n++) await writeScene(storage, `s${n % 4}`, n);
  const names = (await readdir(join(dir, 'columns'))).filter((name) => name.endsWith('.snap'));
  assert.ok(names.length >= 1);
  const keys: string[] = [];
  for await (const key of storage.catalogue.commits.keys()) keys.push(key);
  assert.ok(keys.length < 20, `${keys.length} records in the log`);
  assert.equal((await storage.stats()).snapshotError, null);
  await storage.close();
  assert.equal((await reopened(dir)).from, 'snapshot');
});

test('damaged records are reported at every start, even from a snapshot, until they are fixed', async (t) => {
  const dir = await folderWithLog(t);
  const id = `${COLLECTION.id}_c_g${cellsOf(3)[0]}`;
  await inCatalogue(dir, async (db) => db.put(`!tiles!${id}`, Buffer.from('abcdefgh')));
  await rm(join(dir, 'columns'), { recursive: true });
  for (const from of ['catalogue', 'snapshot', 'snapshot']) {
    const storage = await Storage.open(dir);
    assert.equal(storage.indexLoad.from, from);
    assert.equal(storage.damaged.length, 1);
    await assertIndexed(storage);
    await storage.close();
  }
  const storage = await Storage.open(dir);
  await writeScene(storage, 'c', 4);
  assert.deepEqual(storage.damaged, []);
  await storage.close();
  const last = await Storage.open(dir);
  assert.deepEqual(last.damaged, []);
  await assertIndexed(last);
  await last.close();
});

test('verify lists tiles for which the index differs from the catalogue', async (t) => {
  const dir = await folderWithLog(t);
  const storage = await Storage.open(dir);
  atEnd(t, () => storage.close());
  const [lost, changed] = await storage.getTiles(storage.index.query({}).ids.slice(0, 2));
  storage.index.remove([lost!.id]);
  storage.index.add([
    { ...changed!, coverage: 1 },
    { ...changed!, id: 'another' },
  ]);
  const { problems } = await verify(storage);
  assert.deepEqual(
    problems.map(({ kind, what }) => `${kind} ${what}`).sort(),
    [`index tiles ${lost!.id}`, `index tiles ${changed!.id}`, 'index tiles another'].sort(),
  );
  storage.index.remove(['another']);
  storage.index.add([lost!, changed!]);
});

test('a snapshot whose rows lack a column is not used', async (t) => {
  const dir = await folderWithLog(t);
  const path = await rowsOf(dir);
  const bytes = await readFile(path);
  const length = bytes.readUInt32LE(8);
  const { parts, endianness: _, ...facts } = JSON.parse(bytes.subarray(16, 16 + length).toString());
  const padded = (size: number) => Math.ceil(size / 8) * 8;
  let at = 16 + padded(length);
  const copies = parts.map(({ name, bytes: size }: { name: string; bytes: number }) => {
    at += padded(size);
    return { name, bytes: bytes.subarray(at - padded(size), at - padded(size) + size) };
  });
  const isKept = ({ name }: { name: string }) => name !== 'northParts';
  assert.ok(!copies.every(isKept));
  await writeParts(path, facts, copies);
  assert.equal((await reopened(dir)).from, 'snapshot');
  await writeParts(await rowsOf(dir), facts, copies.filter(isKept));
  const load = await reopened(dir);
  assert.equal(load.from, 'catalogue');
  assert.match(load.reason!, /part northParts/);
});
