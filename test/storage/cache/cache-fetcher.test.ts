/** Fetches and prefetches of files from the object store. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { crc32 } from 'node:zlib';
import { Fetcher } from '../../../src/storage/cache-fetcher.js';
import { DataFolder } from '../../../src/storage/data-folder.js';
import { DiskReserve } from '../../../src/storage/disk.js';
import { FileCache } from '../../../src/storage/file-cache.js';
import { type RecordedFile, tileFile } from '../../../src/storage/file-names.js';
import { type ObjectStore, openObjectStore, tileFolder } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { bytesOf } from '../object-store/contract.js';
import { tempFolder } from '../sample-scenes.js';

const TILE = { id: 'c_s1_g9q8yy', grid: 'geohash', geocode: '9q8yy', version: '0000001abc' } as const;

interface Place {
  files: Fetcher;
  cache: FileCache;
  stored: RecordedFile[];
  /** Paths of a file on the node and in the store. */
  local(file: RecordedFile): string;
  object(file: RecordedFile): string;
}

/** A tile with two files in a store that `wrapped` may slow down, and a node without them. */
async function place(t: TestContext, wrapped: (store: ObjectStore) => ObjectStore): Promise<Place> {
  const root = await tempFolder(t);
  await mkdir(join(root, 'store'));
  const store = await openObjectStore(pathToFileURL(join(root, 'store')).href);
  const folder = await DataFolder.open(join(root, 'node'));
  atEnd(t, () => folder.close());
  await mkdir(join(folder.dir, 'scratch'), { recursive: true });
  const stored = ['10m', '20m'].map((name, i) => {
    const bytes = bytesOf(1000 + i, i);
    return { path: tileFile(TILE, name), bytes: bytes.length, crc32: crc32(bytes), content: bytes };
  });
  for (const { path, content } of stored) await store.put(path, content);
  const cache = new FileCache(folder.dir, folder.catalogue, () => true);
  return {
    files: new Fetcher(folder.dir, wrapped(store), cache, new DiskReserve(folder.dir, 0)),
    cache,
    stored,
    local: ({ path }) => join(folder.dir, path),
    object: ({ path }) => join(root, 'store', path),
  };
}

test('a file that a reader has fetched is not prefetched', async (t) => {
  let go = () => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const held = tileFile(TILE, '10m');
  const { files, stored, local, object } = await place(t, (store) =>
    Object.assign(Object.create(store), {
      async copyTo(...args: Parameters<ObjectStore['copyTo']>) {
        if (args[0] === held) await gate;
        return store.copyTo(...args);
      },
    }),
  );
  const second = stored[1]!;
  const warming = files.prefetch(TILE, stored);
  const release = await files.fetchAndPin(TILE, [second]);
  const read = await readFile(local(second));
  await writeFile(object(second), Buffer.alloc(second.bytes));
  go();
  await warming;
  assert.deepEqual(await readFile(local(second)), read);
  release();
});

test('many readers get a prefetched file, and none of them waits for the store', async (t) => {
  const { files, cache, stored, local } = await place(t, (store) => store);
  await files.prefetch(TILE, stored);
  const [first] = stored as [RecordedFile];
  const releases = await Promise.all(Array.from({ length: 20 }, () => files.fetchAndPin(TILE, [first])));
  assert.equal(cache.hits, 20);
  assert.equal(crc32(await readFile(local(first))), first.crc32);
  for (const release of releases) release();
});

test('failed fetches leave no folder in the cache', async (t) => {
  let isAway = true;
  const { files, cache, stored } = await place(t, (store) =>
    Object.assign(Object.create(store), {
      async copyTo(...args: Parameters<ObjectStore['copyTo']>) {
        if (isAway) throw new Error('the store is away');
        return store.copyTo(...args);
      },
    }),
  );
  await assert.rejects(files.fetchAndPin(TILE, stored), /away/);
  await assert.rejects(files.prefetch(TILE, stored), /away/);
  const other = cache.pin(tileFolder(TILE));
  await assert.rejects(files.fetchAndPin(TILE, stored), /away/);
  assert.equal(cache.size, 1, 'somebody else holds it');
  other();
  assert.equal(cache.size, 0);
  isAway = false;
  (await files.fetchAndPin(TILE, stored))();
  assert.equal(cache.size, 1);
  assert.equal(
    cache.stats.bytes,
    stored.reduce((sum, { bytes }) => sum + bytes, 0),
  );
});
