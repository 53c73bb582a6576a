/** Synced folders, as seen by the operating system. */
import assert from 'node:assert/strict';
import { mkdir, open, readdir, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openNode } from '../../../src/node.js';
import { makeFolderDurably, Storage } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { tempFolder } from '../sample-scenes.js';

const LINUX_ONLY = { skip: process.platform !== 'linux' && 'open files have no names in /proc here' };

/** Records the paths that are synced from now on, and the content of each folder at that time. The syncs are executed. */
async function syncedPaths(t: TestContext): Promise<{ path: string; names: string[] }[]> {
  const handle = await open('/');
  const prototype: { sync(this: typeof handle): Promise<void> } = Object.getPrototypeOf(handle);
  await handle.close();
  const { sync } = prototype;
  const synced: { path: string; names: string[] }[] = [];
  prototype.sync = async function () {
    const path = await readlink(`/proc/self/fd/${this.fd}`);
    synced.push({ path, names: await readdir(path).catch(() => []) });
    return sync.call(this);
  };
  atEnd(t, () => {
    prototype.sync = sync;
  });
  return synced;
}

test(
  'the path of a new data folder is durable before anything is acknowledged in it',
  LINUX_ONLY,
  async (t) => {
    const folder = await tempFolder(t);
    const synced = await syncedPaths(t);
    const dir = join(folder, 'a', 'b', 'data');
    const storage = await Storage.open(dir);
    await storage.close();
    for (const [parent, name] of [
      [folder, 'a'],
      [join(folder, 'a'), 'b'],
      [join(folder, 'a', 'b'), 'data'],
    ] as const)
      assert.ok(
        synced.some(({ path, names }) => path === parent && names.includes(name)),
        `${name} in ${parent}`,
      );
  },
);

test('so is the coordination folder of a single node', LINUX_ONLY, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const dir = join(folder, 'data');
  const storage = await Storage.open(dir, { reserve: 0 });
  await storage.close();
  const synced = await syncedPaths(t);
  const store = pathToFileURL(join(folder, 'store')).href;
  const cluster = { store, etcd: [], name: 'default', advertise: 'http://127.0.0.1:1', zone: 'a', weight: 1 };
  const node = await openNode({
    data: dir,
    memory: 512e6,
    cores: 1,
    reserve: 0,
    cluster: { ...cluster, secrets: ['the secret of the test'] },
  });
  const beforeClose = [...synced];
  await node.close();
  assert.ok(beforeClose.some(({ path, names }) => path === dir && names.includes('coordination')));
});

test('a folder below one that takes no names is refused', LINUX_ONLY, async (t) => {
  for (const parent of ['/proc', '/proc/self/net/absent'])
    await assert.rejects(makeFolderDurably(join(parent, 'a', 'b')), { code: 'ENOENT' });
  const folder = await tempFolder(t);
  await writeFile(join(folder, 'file'), '');
  await assert.rejects(makeFolderDurably(join(folder, 'file')), { code: 'ENOTDIR' });
  await assert.rejects(makeFolderDurably(join(folder, 'file', 'a')), { code: 'ENOTDIR' });
  await Promise.all([1, 2, 3, 4].map((name) => makeFolderDurably(join(folder, 'a', 'b', `${name}`))));
  assert.deepEqual(await readdir(join(folder, 'a', 'b')), ['1', '2', '3', '4']);
});
