/** Eviction of local files. */
import assert from 'node:assert/strict';
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import type { ColumnIndex } from '../../../src/storage/column-index/column-index.js';
import { DataFolder } from '../../../src/storage/data-folder.js';
import { DiskReserve } from '../../../src/storage/disk.js';
import { FileCache } from '../../../src/storage/file-cache.js';
import type { ObjectStore } from '../../../src/storage/object-store/object-store.js';
import type { TileRecord } from '../../../src/storage/records.js';
import { TileCache } from '../../../src/storage/tile-cache.js';
import { atEnd } from '../../support/at-end.js';
import { tempFolder } from '../sample-scenes.js';

const folderOf = (n: number) =>
  `tiles/geohash/9q${n % 3}/9q${n % 3}${n % 2}/c_s${n}_g9q${n % 3}${n % 2}.v00000${n}`;

async function write(dir: string, folder: string, bytes: number, used = 0): Promise<void> {
  const path = join(dir, folder, '10m.tif');
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, Buffer.alloc(bytes));
  if (used > 0) await utimes(path, used, used);
}

async function present(dir: string): Promise<string[]> {
  const entries = await readdir(join(dir, 'tiles'), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath }) => parentPath.slice(dir.length + 1))
    .sort();
}

async function openFolder(t: TestContext): Promise<DataFolder> {
  const folder = await DataFolder.open(await tempFolder(t));
  atEnd(t, () => folder.close());
  return folder;
}

test('at start the times of files give the order; tiles of other nodes and old versions are evicted first, pending ones never', async (t) => {
  const folder = await openFolder(t);
  const { dir, catalogue } = folder;
  for (const n of [1, 2, 3, 4, 5, 6]) await write(dir, folderOf(n), 100, 1000 * (10 - n));
  await catalogue.write([
    catalogue.pending.set(folderOf(6), { since: 1 }),
    catalogue.superseded.set(folderOf(2), { since: 1 }),
  ]);
  // Version 1 is the least recently used of the remaining ones of this node: 5, 4, 3, 1; 3 belongs to another node.
  const cache = new FileCache(dir, catalogue, (id) => !id.includes('_s3_'), 10_000, 0);
  await cache.load();
  assert.equal(cache.stats.bytes, 500);
  const gone = async () => [1, 2, 3, 4, 5, 6].map(folderOf).filter((one) => !remaining.includes(one));
  let remaining = await present(dir);
  for (const expected of [[3], [2, 3], [2, 3, 5], [2, 3, 4, 5], [1, 2, 3, 4, 5]]) {
    await cache.evict(1);
    remaining = await present(dir);
    assert.deepEqual(await gone(), expected.map(folderOf));
  }
  assert.equal(cache.stats.bytes, 0);
  await cache.evict(1e9);
  assert.deepEqual(await present(dir), [folderOf(6)]);
});

test('files that are fetched, committed or dropped while the folder is listed at start count once', async (t) => {
  const { dir, catalogue } = await openFolder(t);
  const folders = [1, 2, 3, 4, 5, 6].map(folderOf);
  const step = fc.record({
    kind: fc.constantFrom('fetch', 'commit', 'forget', 'pin', 'evict'),
    folder: fc.constantFrom(...folders),
    bytes: fc.integer({ min: 1, max: 500 }),
    // Turns of the event loop until the next step.
    turns: fc.integer({ min: 0, max: 8 }),
  });
  const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
    await rm(join(dir, 'tiles'), { recursive: true, force: true });
    for (const folder of folders.slice(0, 3)) {
      await write(dir, folder, 100);
      await writeFile(join(dir, folder, '20m.tif'), Buffer.alloc(30));
    }
    const cache = new FileCache(dir, catalogue, () => true, 1e6, 0);
    const loading = cache.load();
    for (const { kind, folder, bytes, turns } of steps) {
      if (kind === 'fetch' || kind === 'commit') await write(dir, folder, bytes);
      if (kind === 'fetch') cache.set(folder, '10m.tif', { bytes, isVerified: true });
      if (kind === 'commit') await cache.add([folder]);
      if (kind === 'pin') cache.pin(folder)();
      if (kind === 'evict') await cache.evict(1);
      if (kind === 'forget') {
        await rm(join(dir, folder), { recursive: true, force: true });
        cache.forget([folder]);
      }
      for (let turn = 0; turn < turns; turn++) await setImmediate();
    }
    await loading;
    await cache.evict(1e9);
    assert.equal(cache.stats.bytes, 0);
    assert.ok(cache.hasRoom(1e6));
    assert.deepEqual(await present(dir), [], 'a file was not counted');
    await cache.close();
  });
  await fc.assert(property, { seed: 52, numRuns: 60 });
});

test('pinned folders stay, and for a while after; recently used ones are evicted last', async (t) => {
  const { dir, catalogue } = await openFolder(t);
  const cache = new FileCache(dir, catalogue, () => true, 350, 50);
  for (const n of [1, 2, 3]) {
    await write(dir, folderOf(n), 100);
    await cache.add([folderOf(n)]);
  }
  const release = cache.pin(folderOf(1));
  const arrived = cache.reserveBytes(200);
  await cache.makeRoom();
  assert.deepEqual(await present(dir), [folderOf(1)]);
  arrived();
  await cache.evict(1e9);
  release();
  await cache.evict(1e9);
  assert.deepEqual(await present(dir), [folderOf(1)], 'somebody may be about to open it');
  while (cache.stats.bytes > 0) await cache.evict(1e9);
  assert.deepEqual(await present(dir), []);
});

test('concurrent fetches do not reserve the same room', async (t) => {
  const { dir, catalogue } = await openFolder(t);
  const cache = new FileCache(dir, catalogue, () => true, 250, 0);
  await write(dir, folderOf(1), 100);
  await cache.add([folderOf(1)]);
  assert.equal(cache.hasRoom(150), true);
  const arrived = [cache.reserveBytes(100), cache.reserveBytes(100)];
  assert.equal(cache.hasRoom(1), false);
  await cache.makeRoom();
  assert.deepEqual(await present(dir).catch(() => []), [], 'the two need the room of the first');
  for (const end of arrived) end();
  assert.equal(cache.hasRoom(250), true);
});

test('a tile that another node commits is evicted like all tiles of this node', async (t) => {
  const { dir, catalogue } = await openFolder(t);
  const own = new Set<string>();
  const index = { has: (id: string) => own.has(id), query: () => ({ ids: [] }) } as unknown as ColumnIndex;
  const reserve = new DiskReserve(dir, 0);
  const source = { dir, catalogue, reserve, index, getTiles: async () => [] };
  const tiles = new TileCache(source, {} as ObjectStore, undefined, () => false, assert.ifError);
  atEnd(t, () => tiles.close());
  const tileOf = (n: number) => {
    const [, grid, , geocode, name] = folderOf(n).split('/');
    const [id, version] = name!.split('.');
    return { grid, geocode, id, version, groups: [] } as unknown as TileRecord;
  };
  // This node made the files of tile 1 for the commit of another node, and those of tile 2 for its own.
  for (const n of [2, 1]) {
    await write(dir, folderOf(n), 100);
    if (n === 2) own.add(tileOf(n).id);
    await tiles.add([folderOf(n)]);
  }
  own.add(tileOf(1).id);
  tiles.addReplicated([tileOf(1)]);
  await tiles.cache.evict(1);
  assert.deepEqual(await present(dir), [folderOf(1)]);
});

test('the sum of bytes is always that of the files, and the limit holds if nothing is read', async (t) => {
  const { dir, catalogue } = await openFolder(t);
  let run = 0;
  const step = fc.record({ n: fc.nat(8), bytes: fc.integer({ min: 1, max: 60 }), use: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 30 }),
      fc.integer({ min: 60, max: 300 }),
      async (steps, limit) => {
        const base = `run${run++}`;
        const cache = new FileCache(join(dir, base), catalogue, (id) => !id.includes('_s4_'), limit, 0);
        const lastUse = new Map<number, number>();
        for (const [i, { n, bytes, use }] of steps.entries()) {
          if (use) cache.pin(folderOf(n), false)();
          else {
            const arrived = cache.reserveBytes(bytes);
            await cache.makeRoom();
            await write(join(dir, base), folderOf(n), bytes);
            cache.set(folderOf(n), '10m.tif', { bytes, isVerified: true });
            arrived();
          }
          lastUse.set(n, i);
        }
        await cache.makeRoom();
        const files = await present(join(dir, base)).catch(() => []);
        assert.ok(cache.stats.bytes <= limit);
        const named = [...Array(9).keys()].filter((n) => cache.file(folderOf(n), '10m.tif'));
        assert.deepEqual(files, named.map(folderOf).sort());
        assert.equal(
          cache.stats.bytes,
          named.reduce((sum, n) => sum + cache.file(folderOf(n), '10m.tif')!.bytes, 0),
        );
      },
    ),
    { seed: 42, numRuns: 60 },
  );
});
