/** Uses a small file system, a tmpfs, which only root can mount. */
import assert from 'node:assert/strict';
import { readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { DiskReserve } from '../../../src/storage/disk.js';
import { Storage } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { tilewright } from '../../support/command.js';
import { SCENE_FLAGS, writeTestScene } from '../../support/scenes.js';
import { smallDisk } from '../../support/small-disk.js';
import { storageProblems } from '../../support/storage-problems.js';
import { tempFolder } from '../../support/temp.js';
import { COLLECTION, cellsOf, stageTile, writeScene } from '../sample-scenes.js';

const LOW = { code: 'TW_STORAGE_DISK_LOW', status: 507 };

test('announced bytes count, the reserve is kept, and 0 disables it', async (t) => {
  const disk = await smallDisk(t, 20);
  if (disk === undefined) return;
  const { bavail, blocks, bsize } = await statfs(disk);
  const free = bavail * bsize;
  const reserve = new DiskReserve(disk, 5e6);
  await reserve.require(free - 5e6);
  await assert.rejects(reserve.require(free - 5e6 + 1), LOW);
  await reserve.check(free - 6e6);
  await assert.rejects(reserve.check(2e6), LOW);
  await reserve.check(0.5e6);

  const byDefault = new DiskReserve(disk);
  await byDefault.require(Math.floor(free - 0.02 * blocks * bsize));
  await assert.rejects(byDefault.require(free - 0.02 * blocks * bsize + 1), LOW);
  await assert.rejects(byDefault.check(free), {
    ...LOW,
    message: /has 2[01]\.\d MB free, but 2[12]\.\d MB are needed/,
  });
  await new DiskReserve(disk, 0).check(1e15);
  const asked = new DiskReserve(disk, 1e6);
  await Promise.all([asked.check(), asked.check(), asked.check()]);
});

test('a scene on a low disk is refused and leaves no tile; it is accepted when space is free', async (t) => {
  const disk = await smallDisk(t, 20);
  if (disk === undefined) return;
  const storage = await Storage.open(join(disk, 'data'), { reserve: 10e6 });
  atEnd(t, () => storage.close());
  await writeScene(storage, 'a', 7);
  const write = await storage.beginScene(COLLECTION, 'b', cellsOf(7));
  await stageTile(write, 7, cellsOf(7)[0]!);
  await writeFile(join(disk, 'other'), Buffer.alloc(12e6));
  await assert.rejects(storage.reserve.require(0), LOW);
  await assert.rejects(write.publish([cellsOf(7)[0]!]), LOW);
  await assert.rejects(write.stagingFolder(cellsOf(7)[1]!), LOW);
  await write.abort();
  assert.equal(storage.index.size, cellsOf(7).length);
  assert.deepEqual(await storageProblems(storage), []);
  await rm(join(disk, 'other'));
  await storage.reserve.require(0);
  await writeScene(storage, 'b', 7);
});

test('ingest stops at the reserve, names every scene, and keeps existing data', async (t) => {
  const disk = await smallDisk(t, 40);
  if (disk === undefined) return;
  const folder = await tempFolder(t);
  const data = join(disk, 'data');
  const scenes = await Promise.all(
    ['a', 'b'].map((name, seed) => writeTestScene(join(folder, `${name}.tif`), { seed: seed + 1 })),
  );
  const at = ['--datetime', '2024-06-01T10:00:00Z', '--data', data, '--format', 'json', ...SCENE_FLAGS];
  const { code, stdout } = await tilewright('ingest', ...scenes, ...at, '--reserve', '42MB');
  assert.equal(code, 1);
  const { failed } = JSON.parse(stdout);
  assert.deepEqual(
    failed.map(({ path, code }: { path: string; code: string }) => [path, code]),
    scenes.map((path) => [path, LOW.code]),
  );
  assert.deepEqual(await readdir(join(data, 'tiles')), []);
  assert.equal((await tilewright('ingest', scenes[0]!, ...at, '--reserve', '1MB')).code, 0);
});
