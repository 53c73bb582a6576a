import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DataFolder } from '../../../src/storage/data-folder.js';
import { type NewCollection, readLock, Storage } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { smallDisk } from '../../support/small-disk.js';
import { storageProblems } from '../../support/storage-problems.js';
import { COLLECTION, cellsOf, stageTile, tempFolder, writeScene } from '../sample-scenes.js';

const CHILD = fileURLToPath(new URL('./open-child.js', import.meta.url));
const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;

async function startHolder(t: TestContext, dir: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [CHILD, 'hold', dir], { stdio: ['pipe', 'pipe', 'inherit'] });
  atEnd(t, () => child.kill('SIGKILL'));
  await once(child.stdout!, 'data');
  return child;
}

test('a folder that another process has open is refused, with the process and its URL', async (t) => {
  const dir = await tempFolder(t);
  const child = await startHolder(t, dir);
  const lock = await readLock(dir);
  assert.equal(lock?.pid, child.pid);
  assert.equal(lock?.url, 'http://127.0.0.1:8080');
  assert.match(lock!.secret, /^[0-9a-f]{64}$/);
  assert.equal((await stat(join(dir, 'lock'))).mode & 0o777, 0o600);
  await assert.rejects(Storage.open(dir), {
    code: 'TW_STORAGE_LOCKED',
    status: 409,
    message: new RegExp(`process ${child.pid} at http://127.0.0.1:8080`),
  });
  assert.deepEqual(await readLock(dir), lock, 'the refused one leaves the lock alone');

  child.stdin!.end();
  await once(child, 'close');
  assert.equal(await readLock(dir), undefined);
  await (await Storage.open(dir)).close();
});

test('the lock file of a killed process does not exclude others', async (t) => {
  const dir = await tempFolder(t);
  const child = await startHolder(t, dir);
  const before = await readLock(dir);
  child.kill('SIGKILL');
  await once(child, 'close');
  const storage = await Storage.open(dir);
  atEnd(t, () => storage.close());
  const lock = await readLock(dir);
  assert.equal(lock?.pid, process.pid);
  assert.equal(lock?.url, null);
  assert.notEqual(lock?.secret, before?.secret);
  assert.deepEqual(storage.folder.lock, lock);
  await assert.rejects(Storage.open(dir), { code: 'TW_STORAGE_LOCKED' }, 'not twice in one process either');
});

test('a folder of another format is refused and not changed', async (t) => {
  for (const [text, message] of [
    [
      '{"id":"x","format":2,"created":"2030-01-01T00:00:00Z"}',
      /has the format 2, but .* ingest the scenes again/,
    ],
    ['{"id":"x","format":"4","created":"2030-01-01T00:00:00Z"}', /has the format "4", but/],
    ['{"format":4}', /node\.json is damaged: it has no id/],
    ['{"id"', /damaged: it is not JSON: expected a colon at line 1, column 6, found the end; restore/],
    ['', /damaged: it is not JSON: expected a value at line 1/],
    ['null', /damaged: it has no format/],
  ] as const) {
    const dir = await tempFolder(t);
    await writeFile(join(dir, 'node.json'), text);
    await assert.rejects(DataFolder.open(dir), { code: 'TW_STORAGE_FORMAT', message });
    assert.deepEqual(await readdir(dir), ['node.json']);
    assert.equal(await readFile(join(dir, 'node.json'), 'utf8'), text);
  }
});

test('a path that is a file is refused', async (t) => {
  const file = join(await tempFolder(t), 'file');
  await writeFile(file, '');
  await assert.rejects(Storage.open(file), {
    code: 'TW_STORAGE_IO',
    message: /file is not a folder, or is below a file/,
  });
  await assert.rejects(Storage.open(join(file, 'below')), {
    code: 'TW_STORAGE_IO',
    message: /is not a folder, or is below a file/,
  });
});

test('a folder without write permission is refused', async (t) => {
  const dir = join(await tempFolder(t), 'data');
  await (await Storage.open(dir)).close();
  await chmod(join(dir, '..'), 0o755);
  if (isRoot) {
    const out = execFileSync(process.execPath, [CHILD, 'write', dir, `${NOBODY}`], { encoding: 'utf8' });
    assert.equal(out.trim(), 'TW_STORAGE_READ_ONLY');
    const absent = execFileSync(process.execPath, [CHILD, 'write', join(dir, 'sub'), `${NOBODY}`], {
      encoding: 'utf8',
    });
    assert.equal(absent.trim(), 'TW_STORAGE_READ_ONLY');
  } else {
    await chmod(dir, 0o555);
    atEnd(t, () => chmod(dir, 0o755));
    await assert.rejects(Storage.open(dir), { code: 'TW_STORAGE_READ_ONLY' });
  }
  assert.equal(await readLock(dir), undefined);
});

test('a full disk fails the scene, keeps existing data, and accepts writes when space is free', async (t) => {
  const dir = await smallDisk(t, 3);
  if (!dir) return;
  const storage = await Storage.open(dir);
  await writeScene(storage, 'a', 1);
  const full = { code: 'TW_STORAGE_FULL', status: 507, message: new RegExp(dir) };

  // The tiles fill the disk: the write is undone.
  const write = await storage.beginScene(COLLECTION, 'b', cellsOf(2));
  await stageTile(write, 2, cellsOf(2)[0]!);
  const ballast = join(dir, 'ballast');
  await assert.rejects(writeFile(ballast, Buffer.alloc(4 << 20)), { code: 'ENOSPC' });
  const weights = { 'weights.bin': Buffer.alloc(1 << 20) };
  const model = {
    model: 'ndvi',
    collection: COLLECTION.id,
    grid: 'geohash',
    geocode: '9q8yy',
    card: {},
  } as const;
  await assert.rejects(storage.models.put({ ...model, version: '0000000001' }, weights), full);
  await write.abort().catch((error) => assert.equal(error.code, full.code));
  await storage.close().catch((error) => assert.equal(error.code, full.code));

  execFileSync('rm', [ballast]);
  const again = await Storage.open(dir);
  await writeScene(again, 'b', 2);
  assert.deepEqual(await storageProblems(again), []);
  assert.equal((await again.stats()).scenes, 2);
  await again.close();
});

test('a full catalogue refuses writes until it is opened again, and loses nothing', async (t) => {
  const dir = await smallDisk(t, 3);
  if (!dir) return;
  const storage = await Storage.open(dir);
  const big = (n: number) => ({ ...COLLECTION, id: `c${n}`, title: 'x'.repeat(20_000) });
  const full = { code: 'TW_STORAGE_FULL', status: 507 };
  const put = ({ catalogue }: Storage, record: NewCollection) =>
    catalogue.write([catalogue.collections.set(record.id, { ...record, createdAt: 0 })]);
  let acknowledged = 0;
  await assert.rejects(async () => {
    for (; acknowledged < 10_000; acknowledged++) await put(storage, big(acknowledged));
  }, full);
  execFileSync('mount', ['-o', 'remount,size=32m', dir]);
  await assert.rejects(put(storage, big(acknowledged)), full, 'what is on disk is not known');
  assert.equal((await storage.catalogue.collections.get('c0'))?.id, 'c0', 'reading goes on');
  await storage.close();

  const again = await Storage.open(dir);
  t.diagnostic(`${acknowledged} records were acknowledged before the disk was full`);
  assert.ok(acknowledged > 50);
  for (let n = 0; n < acknowledged; n++)
    assert.ok(await again.catalogue.collections.get(`c${n}`), `record ${n}`);
  await put(again, big(acknowledged));
  assert.deepEqual(await storageProblems(again), []);
  await again.close();
});

test('without room for a snapshot of the index, only the next start takes longer', async (t) => {
  const dir = await smallDisk(t, 3);
  if (!dir) return;
  const storage = await Storage.open(dir, { snapshotAfter: 1, reserve: 2_000_000 });
  await writeScene(storage, 'a', 1);
  const ballast = join(dir, 'ballast');
  await writeFile(ballast, Buffer.alloc(1_500_000));
  const warned = once(process, 'warning');
  // Deletions succeed; the snapshot that they make due does not.
  await storage.collections.deleteScene(COLLECTION.id, 'a');
  await storage.close();
  const [warning] = await warned;
  assert.match(warning.message, /no snapshot of the index.*reserve/);
  execFileSync('rm', [ballast]);
  const again = await Storage.open(dir);
  assert.equal(again.index.size, 0);
  assert.deepEqual(await storageProblems(again), []);
  await again.close();
});

test('a read-only file system is refused', async (t) => {
  const dir = await smallDisk(t, 3);
  if (!dir) return;
  await (await Storage.open(dir)).close();
  execFileSync('mount', ['-o', 'remount,ro', dir]);
  await assert.rejects(Storage.open(dir), {
    code: 'TW_STORAGE_READ_ONLY',
    message: /is on a read-only file system/,
  });
});

test('a node.json alone is not a data folder', async (t) => {
  const dir = await tempFolder(t);
  await (await DataFolder.open(join(dir, 'whole'))).close();
  await mkdir(join(dir, 'copy'));
  await copyFile(join(dir, 'whole', 'node.json'), join(dir, 'copy', 'node.json'));
  await assert.rejects(DataFolder.open(join(dir, 'copy')), {
    code: 'TW_STORAGE_NO_CATALOGUE',
    message: /has a node.json but no catalogue/,
  });
  assert.deepEqual(await readdir(join(dir, 'copy')), ['node.json']);
});
