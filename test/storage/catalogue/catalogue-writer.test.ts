/** Every LevelDB of the program after a full disk: all acknowledged data is present. */
import assert from 'node:assert/strict';
import { cp, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LevelStore } from '../../../src/coordination/index.js';
import { Catalogue } from '../../../src/storage/index.js';
import { smallDisk } from '../../support/small-disk.js';
import { tempFolder } from '../../support/temp.js';

interface Database {
  /** Writes one key with about this many bytes, and syncs it. */
  put(key: string, bytes: number): Promise<unknown>;
  has(key: string): Promise<boolean>;
  close(): Promise<void>;
}

const databases: Record<string, (dir: string) => Promise<Database>> = {
  catalogue: async (dir) => {
    const catalogue = await Catalogue.open(dir);
    const { requests } = catalogue;
    return {
      put: (key, bytes) =>
        catalogue.write([requests.set(key, { job: 'v'.repeat(bytes), digest: '', since: 0 })]),
      has: (key) => requests.has(key),
      close: () => catalogue.close(),
    };
  },
  'coordination store': async (dir) => {
    const store = await LevelStore.open(dir);
    return {
      put: (key, bytes) => store.transact({ success: [{ op: 'put', key, value: 'v'.repeat(bytes) }] }),
      has: async (key) => (await store.read([{ key }])).gets[0]!.kvs.length > 0,
      close: () => store.close(),
    };
  },
};

/** A copy of the files that a process would leave if it were killed now. */
async function copyAfterKill(t: TestContext, dir: string): Promise<string> {
  const copy = join(await tempFolder(t), 'copy');
  await cp(dir, copy, { recursive: true, filter: (path) => !path.endsWith('LOCK') });
  return copy;
}

/** Fills the disk except for this many bytes. Returns the file to remove. */
async function fill(disk: string, free: number): Promise<string> {
  const { bavail, bsize } = await statfs(disk);
  const ballast = join(disk, 'ballast');
  await writeFile(ballast, Buffer.alloc(bavail * bsize - free));
  return ballast;
}

for (const [name, open] of Object.entries(databases)) {
  test(`${name}: after a full disk no acknowledged data is lost`, async (t) => {
    const disk = await smallDisk(t, 8);
    if (disk === undefined) return;
    const dir = join(disk, 'db');
    const database = await open(dir);
    const acknowledged: string[] = [];
    const put = async (key: string, bytes: number) => {
      await database.put(key, bytes);
      acknowledged.push(key);
    };
    const full = { code: 'TW_STORAGE_FULL', status: 507 };
    await put('first', 10);
    const ballast = await fill(disk, 8192);
    await assert.rejects(async () => {
      for (let n = 0; n < 200; n++) await put(`a${n}`, 1500);
    }, full);
    await rm(ballast);
    for (let n = 0; n < 20; n++)
      await put(`late${n}`, 10).catch((error: Error) => {
        assert.match(error.message, /accepts no writes until the node is started again.*no space is left/);
      });
    assert.ok(await database.has('first'), 'reading goes on');

    const killed = await open(await copyAfterKill(t, dir));
    for (const key of acknowledged) assert.ok(await killed.has(key), `${key} after a kill`);
    await killed.close();
    await database.close();
    const again = await open(dir);
    for (const key of acknowledged) assert.ok(await again.has(key), `${key} after a stop`);
    await again.put('more', 10);
    await again.close();
  });
}
