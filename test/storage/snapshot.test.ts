/** The index comes back from its snapshot as the catalogue is now, or from the catalogue; never otherwise. */
import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { Level } from 'level';
import { ColumnIndex, Storage, type TileRecord, verify } from '../../src/storage/index.js';
import { encodeRecord } from '../../src/storage/record-codec.js';
import { readSnapshot, writeSnapshot } from '../../src/storage/snapshot.js';
import { tile, tiles } from '../query/tiles.js';
import { faultsOf } from '../support/faults.js';
import { assertIndexed } from './index-oracle.js';
import { COLLECTION, cellsOf, tempFolder, writeScene } from './sample-scenes.js';

const stamp = { sequence: 7, tag: 'x', damaged: [] };

/** Opens the folder, checks the index, and closes without a new snapshot. */
async function reopened(dir: string): Promise<Storage['indexLoad']> {
  const storage = await Storage.open(dir);
  try {
    await assertIndexed(storage);
    return storage.indexLoad;
  } finally {
    await closeAsKilled(storage);
  }
}

/** Closes a folder so that its files are as if the process had been killed, but for those of LevelDB. */
async function closeAsKilled(storage: Storage): Promise<void> {
  const columns = join(storage.dir, 'columns');
  const kept = `${storage.dir}-columns`;
  await cp(columns, kept, { recursive: true });
  await rm(columns, { recursive: true });
  await storage.close();
  await cp(kept, columns, { recursive: true });
  await rm(kept, { recursive: true });
}

/** A folder with a snapshot of three scenes and two later commits. */
async function folderWithLog(t: TestContext): Promise<string> {
  const dir = join(await tempFolder(t), 'data');
  const storage = await Storage.open(dir);
  for (const [scene, n] of [
    ['a', 7],
    ['b', 9],
    ['c', 3],
  ] as const)
    await writeScene(storage, scene, n);
  await storage.close();
  const again = await Storage.open(dir);
  await writeScene(again, 'a', 12);
  await again.deleteScene(COLLECTION.id, 'b');
  await closeAsKilled(again);
  return dir;
}

async function snapshotOf(dir: string): Promise<string> {
  const names = await readdir(join(dir, 'columns'));
  assert.equal(names.length, 1, names.join());
  return join(dir, 'columns', names[0]!);
}

test('any index comes back from its file as it was when the image was made', async (t) => {
  const path = join(await tempFolder(t), 'x.snap');
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
      const image = index.image();
      // What comes after the image is not in it.
      index.add(later.map((record) => ({ ...record, start: 1 })));
      index.remove(records.slice(0, 5).map((record) => record.id));
      await writeSnapshot(path, image, stamp);
      const found = await readSnapshot(path);
      assert.ok('image' in found);
      assert.deepEqual(found.stamp, stamp);
      const restored = new ColumnIndex();
      restored.restore(found.image);
      assert.deepEqual(restored.query({}), expected);
      for (const record of present.values()) assert.ok(restored.agrees(record));
      // It can be changed as any other.
      restored.add(later);
      for (const record of later) present.set(record.id, record);
      restored.merge();
      assert.equal(restored.size, present.size);
      for (const record of present.values()) assert.ok(restored.agrees(record));
    }),
    { seed: 42, numRuns: 40 },
  );
});

test('no snapshot with a flipped byte or of another length is used', async (t) => {
  const path = join(await tempFolder(t), 'x.snap');
  const index = new ColumnIndex();
  index.load(Array.from({ length: 5 }, (_, i) => tile({ scene: `s${i}`, start: i })));
  index.add([tile({ id: 'odd' })]);
  await writeSnapshot(path, index.image(), stamp);
  const sound = await readFile(path);
  let harmless = 0;
  for (let at = 0; at < sound.length; at += 1 + (at % 5)) {
    const bytes = Buffer.from(sound);
    bytes[at]! ^= 1 << (at % 8);
    await writeFile(path, bytes);
    const found = await readSnapshot(path);
    if ('unusable' in found) continue;
    harmless++;
    const restored = new ColumnIndex();
    restored.restore(found.image);
    assert.deepEqual(restored.query({}), index.query({}), `byte ${at}`);
  }
  assert.ok(harmless < sound.length / 4, `${harmless} of ${sound.length} bytes are only there to fill up`);
  for (const length of [0, 3, 15, 16, 100, sound.length >> 1, sound.length - 8]) {
    await writeFile(path, sound.subarray(0, length));
    assert.ok('unusable' in (await readSnapshot(path)), `${length} bytes`);
  }
  assert.ok('unusable' in (await readSnapshot(`${path}.none`)));
});

test('a start takes the snapshot and what was committed since', async (t) => {
  const dir = await folderWithLog(t);
  assert.deepEqual(await reopened(dir), { from: 'snapshot', reason: undefined });
  const storage = await Storage.open(dir);
  assert.deepEqual(await faultsOf(storage), []);
  await storage.close();
  // A clean end leaves one snapshot and the record of its commit.
  const last = await Storage.open(dir);
  const keys: string[] = [];
  for await (const key of last.catalogue.commits.keys()) keys.push(key);
  assert.equal(`${keys.join()}.snap`, (await snapshotOf(dir)).split('/').at(-1));
  await last.close();
});

test('snapshots are written while scenes come, and take their part of the log with them', async (t) => {
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

test('what does not fit the catalogue is not used, and the index is read anew', async (t) => {
  const cases: [reason: RegExp, harm: (dir: string) => Promise<void>][] = [
    [/damaged/, async (dir) => flip(await snapshotOf(dir), (length) => length - 100)],
    [/no snapshot/, async (dir) => flip(await snapshotOf(dir), () => 1)],
    [/format 0/, async (dir) => flip(await snapshotOf(dir), () => 4, 2)],
    [
      /cut off/,
      async (dir) =>
        writeFile(await snapshotOf(dir), (await readFile(await snapshotOf(dir))).subarray(0, 999)),
    ],
    [/commit 4 is missing/, (dir) => inCatalogue(dir, (db) => db.del('!commits!000000000004'))],
    [
      /000000000005" in table commits/,
      (dir) => inCatalogue(dir, (db) => db.put('!commits!000000000005', Buffer.from('abcdef'))),
    ],
    [/does not know/, (dir) => inCatalogue(dir, (db) => db.del('!commits!000000000003'))],
    [
      /another history/,
      (dir) =>
        inCatalogue(dir, (db) =>
          db.put('!commits!000000000003', encodeRecord('000000000003', { tag: 'other', tiles: [] })),
        ),
    ],
  ];
  for (const [reason, harm] of cases) {
    const dir = await folderWithLog(t);
    await harm(dir);
    const load = await reopened(dir);
    assert.equal(load.from, 'catalogue', `${reason}`);
    assert.match(load.reason!, reason);
    // From then on all is as before.
    const storage = await Storage.open(dir);
    await assertIndexed(storage);
    await writeScene(storage, 'd', 5);
    await storage.close();
    assert.equal((await reopened(dir)).from, 'snapshot');
  }
});

test('the snapshot of a later state is not used with a catalogue that was restored from a copy', async (t) => {
  const dir = await folderWithLog(t);
  const copy = `${dir}-copy`;
  await cp(dir, copy, { recursive: true });
  const storage = await Storage.open(dir);
  for (let n = 0; n < 4; n++) await writeScene(storage, 'a', n);
  await storage.close();
  const later = await snapshotOf(dir);
  // The same number of commits, but others.
  const restored = await Storage.open(copy);
  for (let n = 10; n < 14; n++) await writeScene(restored, 'z', n);
  await closeAsKilled(restored);
  await rm(join(copy, 'columns'), { recursive: true });
  await mkdir(join(copy, 'columns'));
  await cp(later, join(copy, 'columns', later.split('/').at(-1)!));
  const load = await reopened(copy);
  assert.equal(load.from, 'catalogue');
  assert.match(load.reason!, /another history/);
});

test('damaged records are told at every start, from a snapshot too, until they are mended', async (t) => {
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

test('verify names tiles of which the index says something else', async (t) => {
  const dir = await folderWithLog(t);
  const storage = await Storage.open(dir);
  t.after(() => storage.close());
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

async function flip(path: string, at: (length: number) => number, mask = 1): Promise<void> {
  const bytes = await readFile(path);
  bytes[at(bytes.length)]! ^= mask;
  await writeFile(path, bytes);
}

async function inCatalogue(dir: string, work: (db: Level<string, Buffer>) => Promise<void>): Promise<void> {
  const db = new Level<string, Buffer>(join(dir, 'catalogue'), { valueEncoding: 'buffer' });
  await work(db);
  await db.close();
}
