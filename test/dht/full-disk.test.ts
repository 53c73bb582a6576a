/** A cluster node whose disk is filled by other programs. */
import assert from 'node:assert/strict';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Storage } from '../../src/storage/index.js';
import { writeScene } from '../storage/sample-scenes.js';
import { smallDisk } from '../support/small-disk.js';
import { startMember } from './cluster-members.js';
import { sharedStores } from './shared-stores.js';

const RESERVE = 8e6;

test('on a full disk, the cache is evicted first; then ingest is refused', async (t) => {
  const disk = await smallDisk(t, 24);
  if (disk === undefined) return;
  const where = await sharedStores(t);
  const storage = await Storage.open(join(disk, 'data'), { reserve: RESERVE });
  const a = await startMember(where, 'a', { storage });
  for (let n = 1; n <= 4; n++) await writeScene(storage, `s${n}`, 399);
  const { bytes } = storage.cacheStats!;
  assert.ok(bytes > 200_000);
  const fill = async (name: string, free: number) => {
    const { bavail, bsize } = await statfs(disk);
    await writeFile(join(disk, name), Buffer.alloc(bavail * bsize - free));
    // The free space is checked once a second.
    await sleep(1100);
  };
  await fill('some', RESERVE - 100_000);
  await writeScene(storage, 's5', 5);
  assert.ok(storage.cacheStats!.evicted > 0);
  await fill('more', RESERVE - 1_000_000);
  await assert.rejects(writeScene(storage, 's9', 9), { code: 'TW_STORAGE_DISK_LOW' });
  const [tile] = await storage.getTiles(storage.index.query({}).ids);
  await assert.rejects(storage.ensureFiles(tile!, tile!.groups), { code: 'TW_STORAGE_DISK_LOW' });
  await rm(join(disk, 'more'));
  await rm(join(disk, 'some'));
  await sleep(1100);
  await writeScene(storage, 's10', 9);
  await storage.ensureFiles(tile!, tile!.groups);
  const others = a.failures.filter((error) => (error as { code?: string }).code !== 'TW_STORAGE_DISK_LOW');
  assert.deepEqual(others, []);
});
