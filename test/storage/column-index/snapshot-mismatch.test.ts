/** A snapshot of the index that does not match the catalogue: the index is read from the catalogue, or the folder is refused. */
import assert from 'node:assert/strict';
import { cp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TilewrightError } from '../../../src/errors.js';
import { encodeRecord } from '../../../src/storage/catalogue.js';
import { Storage } from '../../../src/storage/index.js';
import { tempFolder, writeScene } from '../sample-scenes.js';
import { assertIndexed } from './index-oracle.js';
import {
  closeAsKilled,
  flip,
  folderWithLog,
  inCatalogue,
  reopened,
  rowsOf,
  snapshotOf,
} from './snapshot-folders.js';

test('a snapshot that does not match the catalogue is not used, and the index is read from the catalogue', async (t) => {
  const cases: [reason: RegExp, harm: (dir: string) => Promise<void>][] = [
    [/damaged/, async (dir) => flip(await rowsOf(dir), (length) => length - 100)],
    [/cannot be read/, async (dir) => rm(await rowsOf(dir))],
    [/not a snapshot/, async (dir) => flip(await snapshotOf(dir), () => 1)],
    [/format 7/, async (dir) => flip(await snapshotOf(dir), () => 4, 2)],
    [
      /truncated/,
      async (dir) => writeFile(await rowsOf(dir), (await readFile(await rowsOf(dir))).subarray(0, 999)),
    ],
    [/commit 4 is missing/, (dir) => inCatalogue(dir, (db) => db.del('!commits!000000000004'))],
    [
      /000000000005" in table commits/,
      (dir) => inCatalogue(dir, (db) => db.put('!commits!000000000005', Buffer.from('abcdef'))),
    ],
    [/catalogue does not have/, (dir) => inCatalogue(dir, (db) => db.del('!commits!000000000003'))],
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
    // Afterwards, snapshots work as before.
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
  // The same number of commits, but different ones.
  const restored = await Storage.open(copy);
  for (let n = 10; n < 14; n++) await writeScene(restored, 'z', n);
  await closeAsKilled(restored);
  await rm(join(copy, 'columns'), { recursive: true });
  await cp(join(dir, 'columns'), join(copy, 'columns'), { recursive: true });
  const load = await reopened(copy);
  assert.equal(load.from, 'catalogue');
  assert.match(load.reason!, /another history/);
});

test('a catalogue that ends before the commit of its snapshot is refused until somebody decides to continue', async (t) => {
  const dir = await folderWithLog(t);
  await inCatalogue(dir, async (db) => {
    for (const n of [3, 4, 5]) await db.del(`!commits!00000000000${n}`);
  });
  for (let i = 0; i < 2; i++)
    await assert.rejects(Storage.open(dir), (error: TilewrightError) => error.code === 'TW_STORAGE_DAMAGED');
  assert.match(await readFile(join(dir, 'damaged'), 'utf8'), /ends before commit 3/);
  await rm(join(dir, 'damaged'));
  const storage = await Storage.open(dir);
  assert.equal(storage.indexLoad.from, 'catalogue');
  await assertIndexed(storage);
  await storage.close();
  assert.equal((await reopened(dir)).from, 'snapshot');
});

test('a copy of a snapshot with another name is not taken for a later one', async (t) => {
  const dir = await folderWithLog(t);
  await cp(await snapshotOf(dir), join(dir, 'columns', 'old-copy.snap'));
  assert.equal((await reopened(dir)).from, 'snapshot');
});

test('a catalogue with a truncated log is refused', async (t) => {
  const dir = join(await tempFolder(t), 'data');
  const storage = await Storage.open(dir);
  await writeScene(storage, 'a', 7);
  await storage.close();
  const folder = join(dir, 'catalogue');
  for (const name of await readdir(folder)) if (name.endsWith('.log')) await truncate(join(folder, name), 0);
  await assert.rejects(Storage.open(dir), (error: TilewrightError) => error.code === 'TW_STORAGE_DAMAGED');
});
