/** Fetches and prefetches of files from the object store. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { crc32 } from 'node:zlib';
import { Fetcher, type GroupFile } from '../../../src/storage/cache-fetcher.js';
import { DataFolder } from '../../../src/storage/data-folder.js';
import { DiskReserve } from '../../../src/storage/disk.js';
import { FileCache } from '../../../src/storage/file-cache.js';
import { type ObjectStore, openObjectStore, tileFile, tileFolder } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { bytesOf } from '../object-store/contract.js';
import { tempFolder } from '../sample-scenes.js';

const TILE = { id: 'c_s1_g9q8yy', grid: 'geohash', geocode: '9q8yy', version: '0000001abc' } as const;

interface Place {
  files: Fetcher;
  cache: FileCache;
  groups: GroupFile[];
  /** Path of a file on the node, and its name in the store. */
  local(group: GroupFile): string;
  stored(group: GroupFile): string;
}

/** A tile with two files in a store that `wrapped` may slow down, and a node without them. */
async function place(t: TestContext, wrapped: (store: ObjectStore) => ObjectStore): Promise<Place> {
  const root = await tempFolder(t);
  await mkdir(join(root, 'store'));
  const store = await openObjectStore(pathToFileURL(join(root, 'store')).href);
  const folder = await DataFolder.open(join(root, 'node'));
  atEnd(t, () => folder.close());
  await mkdir(join(folder.dir, 'scratch'), { recursive: true });
  const groups = ['10m', '20m'].map((name, i) => {
    const bytes = bytesOf(1000 + i, i);
    return { name, bytes: bytes.length, crc32: crc32(bytes), content: bytes };
  });
  for (const { name, content } of groups) await store.put(tileFile(TILE, name), content);
  const cache = new FileCache(folder.dir, folder.catalogue, () => true);
  return {
    files: new Fetcher(folder.dir, wrapped(store), cache, new DiskReserve(folder.dir, 0)),
    cache,
    groups,
    local: ({ name }) => join(folder.dir, tileFile(TILE, name)),
    stored: ({ name }) => join(root, 'store', tileFile(TILE, name)),
  };
}

test('a file that a reader has fetched is not prefetched', async (t) => {
  let go = () => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const held = tileFile(TILE, '10m');
  const { files, groups, local, stored } = await place(t, (store) =>
    Object.assign(Object.create(store), {
      async copyTo(...args: Parameters<ObjectStore['copyTo']>) {
        if (args[0] === held) await gate;
        return store.copyTo(...args);
      },
    }),
  );
  const second = groups[1]!;
  const warming = files.prefetch(TILE, groups);
  const release = await files.fetchAndPin(TILE, [second]);
  const read = await readFile(local(second));
  await writeFile(stored(second), Buffer.alloc(second.bytes));
  go();
  await warming;
  assert.deepEqual(await readFile(local(second)), read);
  release();
});

test('many readers get a prefetched file, and none of them waits for the store', async (t) => {
  const { files, cache, groups, local } = await place(t, (store) => store);
  await files.prefetch(TILE, groups);
  const [first] = groups as [GroupFile];
  const releases = await Promise.all(Array.from({ length: 20 }, () => files.fetchAndPin(TILE, [first])));
  assert.equal(cache.hits, 20);
  assert.equal(crc32(await readFile(local(first))), first.crc32);
  for (const release of releases) release();
});

test('failed fetches leave no folder in the cache', async (t) => {
  let isAway = true;
  const { files, cache, groups } = await place(t, (store) =>
    Object.assign(Object.create(store), {
      async copyTo(...args: Parameters<ObjectStore['copyTo']>) {
        if (isAway) throw new Error('the store is away');
        return store.copyTo(...args);
      },
    }),
  );
  await assert.rejects(files.fetchAndPin(TILE, groups), /away/);
  await assert.rejects(files.prefetch(TILE, groups), /away/);
  const other = cache.pin(tileFolder(TILE));
  await assert.rejects(files.fetchAndPin(TILE, groups), /away/);
  assert.equal(cache.size, 1, 'somebody else holds it');
  other();
  assert.equal(cache.size, 0);
  isAway = false;
  (await files.fetchAndPin(TILE, groups))();
  assert.equal(cache.size, 1);
  assert.equal(
    cache.stats.bytes,
    groups.reduce((sum, { bytes }) => sum + bytes, 0),
  );
});
