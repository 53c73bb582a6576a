/** The contract of tile stores. Each implementation runs this suite. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import type { ObjectStore } from '../../../src/storage/index.js';
import { hasGdal } from '../../support/gdal.js';
import { tempFolder } from '../../support/temp.js';

export interface OpenedStore {
  store: ObjectStore;
  /** The file with the bytes of an object. */
  fileOf(name: string): string;
  /** Environment variables for GDAL. */
  gdal?: Record<string, string>;
}

export interface Contract {
  /** Name of the implementation, for test titles. */
  what: string;
  skip?: string | false;
  /** An empty store. */
  open(t: TestContext): Promise<OpenedStore>;
}

/** Pseudo-random bytes that differ by seed. */
export function bytesOf(length: number, seed: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let state = (seed * 2654435761 + 1) >>> 0;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

export async function namesIn(store: ObjectStore, prefix = ''): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of store.list(prefix)) names.push(name);
  return names;
}

const LARGE = 9 << 20;
const NAME = 'tiles/geohash/9q8/9q8yy/naip_a_g9q8yy/0000001abc/1m.tif';

export function storeContract({ what, skip = false, open }: Contract): void {
  const promise = (title: string, check: (opened: OpenedStore, t: TestContext) => Promise<void>) =>
    test(`${what}: ${title}`, { skip }, async (t) => check(await open(t), t));

  promise('bytes and files come back as they were put', async ({ store }, t) => {
    const folder = await tempFolder(t);
    for (const [i, length] of [0, 1, 65_537, LARGE].entries()) {
      const bytes = bytesOf(length, i);
      const file = join(folder, `${i}`);
      await writeFile(file, bytes);
      for (const content of [bytes, { file }]) {
        const name = `tiles/${'file' in content ? 'file' : 'bytes'}/${length}`;
        const sum = { crc32: crc32(bytes) };
        await store.put(name, content, sum);
        assert.ok((await store.get(name, sum)).equals(bytes));
        assert.ok((await buffer(await store.stream(name, sum))).equals(bytes));
        assert.equal((await store.head(name))?.bytes, length);
        for (const options of [sum, {}]) {
          const copy = join(folder, randomUUID());
          await store.copyTo(name, copy, options);
          assert.ok((await readFile(copy)).equals(bytes));
        }
      }
    }
  });

  promise('a name is put again with the same content only', async ({ store }, t) => {
    const file = join(await tempFolder(t), 'other');
    for (const length of [1000, LARGE]) {
      const bytes = bytesOf(length, 1);
      await writeFile(file, bytesOf(length, 2));
      const name = `models/m/${length}`;
      await store.put(name, bytes);
      await store.put(name, bytes);
      for (const other of [bytesOf(length, 2), { file }, Buffer.alloc(0), bytesOf(length + 1, 1)])
        await assert.rejects(store.put(name, other), { code: 'TW_STORE_EXISTS' });
      assert.ok((await store.get(name)).equals(bytes));
    }
  });

  promise('of many that claim a name at once one gets it, and the others are told', async ({ store }) => {
    for (let round = 0; round < 5; round++) {
      const name = `claims/${round}`;
      const bytes = Array.from({ length: 16 }, (_, i) => bytesOf(100, i));
      const claim = (content: Buffer) => store.put(name, content, { ifAbsent: true });
      const ends = await Promise.allSettled(bytes.map(claim));
      const won = bytes.filter((_, i) => ends[i]!.status === 'fulfilled');
      assert.equal(won.length, 1);
      for (const end of ends)
        if (end.status === 'rejected') assert.equal((end.reason as { code: string }).code, 'TW_STORE_EXISTS');
      assert.ok((await store.get(name)).equals(won[0]!));
      await claim(won[0]!);
    }
  });

  promise('what is not as its record says is not written', async ({ store }, t) => {
    const file = join(await tempFolder(t), 'damaged');
    await writeFile(file, bytesOf(LARGE, 3));
    for (const content of [bytesOf(100, 3), { file }])
      await assert.rejects(store.put(NAME, content, { crc32: 1 }), { code: 'TW_STORE_CORRUPT' });
    await assert.rejects(store.put(NAME, { file: `${file}-missing` }), { code: 'TW_STORAGE_IO' });
    assert.equal(await store.head(NAME), undefined);
    assert.deepEqual(await namesIn(store), []);
  });

  promise('a copy that fails says whether it is the store or the disk', async ({ store }, t) => {
    const folder = await tempFolder(t);
    await store.put(NAME, bytesOf(1000, 5));
    const copy = (file: string, crc32?: number) =>
      store.copyTo(NAME, join(folder, file), crc32 === undefined ? {} : { crc32 });
    await assert.rejects(copy('wrong', 1), { code: 'TW_STORE_CORRUPT' });
    await assert.rejects(copy('no/such/folder'), { code: 'TW_STORAGE_IO', message: /no\/such/ });
    await writeFile(join(folder, 'there'), 'before');
    await assert.rejects(copy('there'), { code: 'TW_STORAGE_IO' });
    assert.equal(await readFile(join(folder, 'there'), 'utf8'), 'before');
    await assert.rejects(store.copyTo(`${NAME}x`, join(folder, 'new')), { code: 'TW_STORE_NOT_FOUND' });
    const aborted = AbortSignal.abort(new Error('enough'));
    await assert.rejects(store.copyTo(NAME, join(folder, 'late'), { signal: aborted }), /enough/);
  });

  promise('ranges are those of the bytes', async ({ store }) => {
    const bytes = bytesOf(300_000, 4);
    await store.put(NAME, bytes);
    const at = fc.oneof(fc.nat(bytes.length + 10), fc.constant(bytes.length));
    await fc.assert(
      fc.asyncProperty(at, fc.oneof(at, fc.constant(undefined)), async (offset, length) => {
        const expected = bytes.subarray(offset, length === undefined ? undefined : offset + length);
        const options = { offset, length, crc32: crc32(expected) };
        assert.ok((await store.get(NAME, options)).equals(expected));
        assert.ok((await buffer(await store.stream(NAME, options))).equals(expected));
      }),
      { seed: 42, numRuns: 40 },
    );
  });

  promise('what is not there is said to be missing', async ({ store }) => {
    assert.equal(await store.head(NAME), undefined);
    await assert.rejects(store.get(NAME), { code: 'TW_STORE_NOT_FOUND', message: new RegExp(NAME) });
    await assert.rejects(store.stream(NAME), { code: 'TW_STORE_NOT_FOUND' });
    await store.delete([NAME]);
    assert.deepEqual(await namesIn(store, 'tiles/'), []);
    await store.put('tiles/a/b', Buffer.from('b'));
    for (const name of ['tiles', 'tiles/a', 'tiles/a/b/c', 'tiles/aa']) {
      assert.equal(await store.head(name), undefined, name);
      await assert.rejects(store.get(name), { code: 'TW_STORE_NOT_FOUND' }, name);
      await store.delete(['tiles/a/b/c']);
    }
    assert.deepEqual(await namesIn(store), ['tiles/a/b']);
  });

  promise('a list has the names with a prefix in the order of their bytes, with sizes', async ({ store }) => {
    const word = fc
      .tuple(fc.constantFrom(...'abA0'), fc.string({ unit: fc.constantFrom(...'abA0.-+_'), maxLength: 3 }))
      .map(([first, rest]) => first + rest);
    const name = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join('/'));
    const names = fc.uniqueArray(name, { minLength: 1, maxLength: 25 }).map(withoutFolders);
    await fc.assert(
      fc.asyncProperty(names, fc.nat(), fc.nat(6), async (put, which, length) => {
        const prefix = (put[which % put.length] ?? '').slice(0, length);
        const before = Date.now() - 10_000;
        await store.delete(await namesIn(store));
        await Promise.all(put.map((each) => store.put(each, Buffer.from(each))));
        const found = [];
        for await (const info of store.list(prefix)) {
          found.push(info.name);
          assert.equal(info.bytes, info.name.length);
          assert.ok(info.modified > before && info.modified < Date.now() + 10_000);
        }
        assert.deepEqual(found, put.filter((each) => each.startsWith(prefix)).sort());
      }),
      { seed: 42, numRuns: 12 },
    );
  });

  promise('lists go on beyond one page of a server', async ({ store, fileOf }) => {
    const names = Array.from({ length: 1100 }, (_, i) => `catalogue/log/${`${i}`.padStart(8, '0')}`);
    await store.put(names[0], Buffer.from('first'));
    for (const name of names) await writeFile(fileOf(name), name);
    assert.deepEqual(await namesIn(store, 'catalogue/'), names);
    await store.delete(names.slice(900));
    assert.deepEqual(await namesIn(store, 'catalogue/log/000008'), names.slice(800, 900));
  });

  promise('names that could lead elsewhere are refused everywhere', async ({ store }) => {
    const bad = [
      '',
      '/a',
      'a/',
      'a//b',
      '../a',
      'a/../b',
      '.a',
      'a/.b',
      'a b',
      'a\\b',
      'ä',
      'a\n',
      '%2e',
      'x'.repeat(256),
    ];
    for (const name of bad) {
      const error = { code: 'TW_STORAGE_BAD_NAME' };
      await assert.rejects(store.put(name, Buffer.from('x')), error, name);
      await assert.rejects(store.get(name), error, name);
      await assert.rejects(store.stream(name), error, name);
      await assert.rejects(store.head(name), error, name);
      await assert.rejects(store.delete([name]), error, name);
      assert.throws(() => store.location(name), error, name);
    }
    for (const prefix of ['/a', '../', 'a//', '.', 'a b'])
      await assert.rejects(namesIn(store, prefix), { code: 'TW_STORAGE_BAD_NAME' }, prefix);
  });

  promise(
    'a byte that has changed in the store is noticed, also a lost end and a lost object',
    async (opened) => {
      const { store, fileOf } = opened;
      const bytes = bytesOf(200_000, 5);
      const sum = { crc32: crc32(bytes) };
      await store.put(NAME, bytes);
      const damaged = Buffer.from(bytes);
      damaged[123_456]! ^= 4;
      for (const content of [damaged, bytes.subarray(0, 150_000)]) {
        await writeFile(fileOf(NAME), content);
        await assert.rejects(store.get(NAME, sum), { code: 'TW_STORE_CORRUPT', message: new RegExp(NAME) });
        await assert.rejects(buffer(await store.stream(NAME, sum)), { code: 'TW_STORE_CORRUPT' });
        await assert.rejects(store.put(NAME, bytes), { code: 'TW_STORE_EXISTS' });
      }
      await rm(fileOf(NAME));
      await assert.rejects(store.get(NAME, sum), { code: 'TW_STORE_NOT_FOUND' });
    },
  );

  promise('everything stops when it is aborted, with the reason', async ({ store }, t) => {
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    const same = (error: unknown) => error === reason;
    await store.put(NAME, bytesOf(LARGE, 6));
    await assert.rejects(store.put('a', Buffer.from('a'), { signal }), same);
    await assert.rejects(store.get(NAME, { signal }), same);
    await assert.rejects(store.stream(NAME, { signal }), same);
    await assert.rejects(store.head(NAME, { signal }), same);
    await assert.rejects(store.list('', { signal })[Symbol.asyncIterator]().next(), same);
    await assert.rejects(store.delete([NAME], { signal }), same);

    const later = new AbortController();
    const stream = await store.stream(NAME, { signal: later.signal });
    const reading = buffer(stream);
    later.abort(reason);
    await assert.rejects(reading, same);

    const file = join(await tempFolder(t), 'large');
    await writeFile(file, bytesOf(LARGE, 7));
    const during = new AbortController();
    const putting = store.put('large', { file }, { signal: during.signal });
    setImmediate(() => during.abort(reason));
    await assert.rejects(putting, same);
    assert.equal(await store.head('large'), undefined);
    assert.deepEqual(await namesIn(store), [NAME]);
  });

  promise('streams that are not read to their end hold nothing', async ({ store }) => {
    await store.put(NAME, bytesOf(LARGE, 8));
    for (let i = 0; i < 100; i++) (await store.stream(NAME)).destroy();
    assert.equal((await store.get(NAME)).length, LARGE);
  });

  promise('many at once', async ({ store }) => {
    const all = Array.from({ length: 300 }, (_, i) => ({
      name: `tiles/${i % 7}/${i}`,
      bytes: bytesOf(i * 100, i),
    }));
    await Promise.all(all.map(({ name, bytes }) => store.put(name, bytes)));
    await Promise.all(all.map(async ({ name, bytes }) => assert.ok((await store.get(name)).equals(bytes))));
    await Promise.all(
      all.map(async ({ name, bytes }, i) =>
        i % 2 ? store.delete([name]) : assert.ok((await store.get(name)).equals(bytes)),
      ),
    );
    assert.equal((await namesIn(store)).length, 150);
  });

  test(`${what}: GDAL opens what was put`, {
    skip: skip || (!hasGdal && 'GDAL is not installed'),
  }, async (t) => {
    const { store, gdal } = await open(t);
    const folder = await tempFolder(t);
    const file = join(folder, 'a.tif');
    execFileSync('gdal_create', ['-q', '-of', 'COG', '-outsize', '300', '200', '-burn', '7', file]);
    await store.put(NAME, { file });
    const info = execFileSync('gdalinfo', ['-json', '-checksum', store.location(NAME)], {
      env: { ...process.env, ...gdal },
      encoding: 'utf8',
    });
    assert.deepEqual(JSON.parse(info).size, [300, 200]);
    assert.equal((await store.get(NAME)).compare(await readFile(file)), 0);
  });
}

/** Names of which no one is a folder of another. */
function withoutFolders(names: string[]): string[] {
  return names.filter((name) => !names.some((other) => other.startsWith(`${name}/`)));
}
