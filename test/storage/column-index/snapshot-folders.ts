/** Data folders with a snapshot of the index, and ways to damage them. */
import assert from 'node:assert/strict';
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Level } from 'level';
import { Storage } from '../../../src/storage/index.js';
import { COLLECTION, tempFolder, writeScene } from '../sample-scenes.js';
import { assertIndexed } from './index-oracle.js';

/** Opens the folder, checks the index, and closes without a new snapshot. */
export async function reopened(dir: string): Promise<Storage['indexLoad']> {
  const storage = await Storage.open(dir);
  try {
    await assertIndexed(storage);
    return storage.indexLoad;
  } finally {
    await closeAsKilled(storage);
  }
}

/** Closes a folder so that its files, except those of LevelDB, are as if the process had been killed. */
export async function closeAsKilled(storage: Storage): Promise<void> {
  const columns = join(storage.dir, 'columns');
  const kept = `${storage.dir}-columns`;
  await cp(columns, kept, { recursive: true });
  await rm(columns, { recursive: true });
  await storage.close();
  await cp(kept, columns, { recursive: true });
  await rm(kept, { recursive: true });
}

/** A folder with a snapshot of three scenes and two later commits. */
export async function folderWithLog(t: TestContext): Promise<string> {
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
  await again.collections.deleteScene(COLLECTION.id, 'b');
  await closeAsKilled(again);
  return dir;
}

/** The file of this kind in a folder with a single run. */
async function fileOf(dir: string, kind: '.snap' | '.rows'): Promise<string> {
  const names = await readdir(join(dir, 'columns'));
  assert.equal(names.length, 2, names.join());
  return join(dir, 'columns', names.find((name) => name.endsWith(kind))!);
}

export const snapshotOf = (dir: string) => fileOf(dir, '.snap');
export const rowsOf = (dir: string) => fileOf(dir, '.rows');

export async function flip(path: string, at: (length: number) => number, mask = 1): Promise<void> {
  const bytes = await readFile(path);
  bytes[at(bytes.length)]! ^= mask;
  await writeFile(path, bytes);
}

export async function inCatalogue(
  dir: string,
  work: (db: Level<string, Buffer>) => Promise<void>,
): Promise<void> {
  const db = new Level<string, Buffer>(join(dir, 'catalogue'), { valueEncoding: 'buffer' });
  await work(db);
  await db.close();
}
