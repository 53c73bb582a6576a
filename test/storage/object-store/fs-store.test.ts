import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { access, mkdir, readdir, rename, truncate, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { crc32 } from 'node:zlib';
import { type ObjectStore, openObjectStore } from '../../../src/storage/index.js';
import { smallDisk } from '../../support/small-disk.js';
import { tempFolder } from '../../support/temp.js';
import { runAndKill } from '../kill-writer.js';
import { bytesOf, namesIn, storeContract } from './contract.js';
import { objectOf } from './writer-child.js';

const openAt = (folder: string): Promise<ObjectStore> => openObjectStore(pathToFileURL(folder).href);

storeContract({
  what: 'a folder',
  async open(t) {
    const folder = await tempFolder(t);
    return { store: await openAt(folder), fileOf: (name) => join(folder, name) };
  },
});

const WRITER = fileURLToPath(new URL('writer-child.js', import.meta.url));

test('a killed writer leaves complete objects and no others', async (t) => {
  const folder = await tempFolder(t);
  const { href } = pathToFileURL(folder);
  for (let round = 0, next = 1; round < 5; round++) {
    const last = await runAndKill(WRITER, ['put'], href, next);
    const store = await openAt(folder);
    const names = await namesIn(store);
    for (let n = 1; n <= last; n++) assert.ok(names.includes(objectOf(n).name), `object ${n} is there`);
    for (const name of names) {
      const { bytes } = objectOf(Number(name.split('/')[2]));
      await store.get(name, { crc32: crc32(bytes) });
    }
    next = last + 1;
  }
});

test('leftovers of a killed writer are removed when they are old, and never listed', async (t) => {
  const folder = await tempFolder(t);
  const store = await openAt(folder);
  const [old, young] = ['old', 'young'].map((name) => join(folder, '.tmp', name));
  for (const path of [old, young]) await writeFile(path, 'half an obj');
  const twoDaysAgo = Date.now() / 1000 - 2 * 86_400;
  await utimes(old, twoDaysAgo, twoDaysAgo);
  assert.deepEqual(await namesIn(store), []);
  await openAt(folder);
  assert.deepEqual(await readdir(join(folder, '.tmp')), ['young']);
});

test('a full disk is reported, and objects are accepted again when space is free', async (t) => {
  const disk = await smallDisk(t, 4);
  if (!disk) return;
  const store = await openAt(disk);
  await store.put('tiles/a', bytesOf(3_000_000, 1));
  await assert.rejects(store.put('tiles/b', bytesOf(3_000_000, 2)), { code: 'TW_STORE_FULL', status: 507 });
  assert.deepEqual(await namesIn(store), ['tiles/a']);
  assert.deepEqual(await readdir(join(disk, '.tmp')), []);
  await store.delete(['tiles/a']);
  await store.put('tiles/b', bytesOf(3_000_000, 2));
});

test('a read-only disk returns objects and accepts none', async (t) => {
  const disk = await smallDisk(t, 4);
  if (!disk) return;
  const store = await openAt(disk);
  await store.put('tiles/a', bytesOf(1000, 1));
  execFileSync('mount', ['-o', 'remount,ro', disk]);
  await assert.rejects(store.put('tiles/b', bytesOf(1000, 2)), { code: 'TW_STORE_DENIED' });
  await assert.rejects(store.delete(['tiles/a']), { code: 'TW_STORE_DENIED' });
  assert.ok((await store.get('tiles/a')).equals(bytesOf(1000, 1)));
});

test('a missing mount is not an empty store', async (t) => {
  const disk = await smallDisk(t, 4);
  if (!disk) return;
  const store = await openAt(disk);
  await store.put('tiles/a', bytesOf(1000, 1));
  execFileSync('umount', ['-l', disk]);
  const away = { code: 'TW_STORE_UNAVAILABLE', status: 503 };
  await assert.rejects(store.get('tiles/a'), away);
  await assert.rejects(store.head('tiles/a'), away);
  await assert.rejects(namesIn(store), away);
  await assert.rejects(store.put('tiles/b', bytesOf(1000, 2)), away);
  assert.deepEqual(await readdir(disk), []);
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', disk]);
});

test('a root folder that is removed during a write is not created again', async (t) => {
  const folder = join(await tempFolder(t), 'mount');
  await mkdir(folder);
  const store = await openAt(`${folder}/`);
  const file = join(dirname(folder), 'large');
  await writeFile(file, '');
  await truncate(file, 200e6);
  const put = store.put('tiles/a/b/c', { file });
  const refused = assert.rejects(put, { code: 'TW_STORE_UNAVAILABLE' });
  while ((await readdir(join(folder, '.tmp'))).length === 0) await setImmediate();
  await rename(folder, `${folder}-away`);
  await refused;
  await assert.rejects(access(folder), { code: 'ENOENT' });
  await rename(`${folder}-away`, folder);
  await store.put('tiles/a/b/c', bytesOf(1000, 1));
  assert.deepEqual(await namesIn(store), ['tiles/a/b/c']);
});

test('empty folders are removed with their last object', async (t) => {
  const folder = await tempFolder(t);
  const store = await openAt(folder);
  for (const name of ['a/b/c/1', 'a/b/2', 'a/3']) await store.put(name, Buffer.from(name));
  await store.delete(['a/b/c/1', 'a/3']);
  assert.deepEqual((await readdir(folder, { recursive: true })).sort(), ['.tmp', 'a', 'a/b', 'a/b/2']);
  await store.delete(['a/b/2']);
  assert.deepEqual(await readdir(folder), ['.tmp']);
});

test('a folder that a delete is removing accepts new objects', async (t) => {
  const store = await openAt(await tempFolder(t));
  const comeAndGo = async (lane: number) => {
    for (let i = 0; i < 150; i++) {
      const name = `a/b/c/d/${lane}`;
      await store.put(name, Buffer.from(`${i}`));
      assert.equal(`${await store.get(name)}`, `${i}`);
      await store.delete([name]);
    }
  };
  await Promise.all([0, 1, 2].map(comeAndGo));
  assert.deepEqual(await namesIn(store), []);
});

test('other files in the folder are not listed', async (t) => {
  const folder = await tempFolder(t);
  const store = await openAt(folder);
  await mkdir(join(folder, '.snapshot'));
  for (const name of ['.nfs0001', '.snapshot/a', 'a b']) await writeFile(join(folder, name), 'x');
  assert.deepEqual(await namesIn(store), []);
});

test('invalid URLs are refused, and never shown with credentials', async (t) => {
  const folder = await tempFolder(t);
  const bad = [
    '',
    'tiles',
    '/mnt/tiles',
    'http://host/tiles',
    'file://host/tiles',
    'file:///',
    's3://',
    's3://Bad_Bucket',
  ];
  for (const url of [
    ...bad,
    's3://tiles/../x',
    's3://tiles/a b',
    's3://tiles//a',
    's3://tiles?x=1',
    's3://tiles:90',
  ])
    await assert.rejects(openObjectStore(url), { code: 'TW_STORE_BAD_URL' }, url);
  await assert.rejects(
    openObjectStore('s3://key:hush@tiles/a'),
    (error: Error) => !error.message.includes('hush'),
  );
  await assert.rejects(openAt(join(folder, 'missing')), { code: 'TW_STORE_NOT_FOUND' });
  const store = await openObjectStore(`${pathToFileURL(folder).href}/`);
  assert.equal(store.location('tiles/a'), join(folder, 'tiles/a'));
});
