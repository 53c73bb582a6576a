import assert from 'node:assert/strict';
import { readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Storage } from '../../src/storage/index.js';
import { faultsOf } from '../support/faults.js';
import { tempFolder } from '../support/temp.js';

test('a scratch folder is fresh, no fault to verify, and gone after a new start', async (t) => {
  const dir = await tempFolder(t);
  const storage = await Storage.open(dir);
  const folders = await Promise.all(
    ['upload', 'upload', undefined].map((name) => storage.scratchFolder(name)),
  );
  assert.equal(new Set(folders).size, 3);
  for (const folder of folders) {
    assert.deepEqual(await readdir(folder), []);
    await writeFile(join(folder, 'a.tif'), 'x');
  }
  await assert.rejects(storage.scratchFolder('../x'), { code: 'TW_STORAGE_BAD_NAME' });
  assert.deepEqual(await faultsOf(storage), []);
  await storage.close();
  const again = await Storage.open(dir);
  t.after(() => again.close());
  for (const folder of folders) await assert.rejects(readdir(folder), { code: 'ENOENT' });
});

test('what work may go on from stays for a week after its last change', async (t) => {
  const dir = await tempFolder(t);
  const storage = await Storage.open(dir);
  const [young, old, done] = await Promise.all(
    ['young', 'old', 'done'].map((one) => storage.keptScratch(one)),
  );
  for (const folder of [young!, old!, done!]) await writeFile(join(folder, 'checkpoint'), 'x');
  assert.equal(await storage.keptScratch('young'), young);
  await storage.removeScratch(done!);
  await storage.close();
  const days = (count: number) => new Date(Date.now() - count * 86_400_000);
  await utimes(young!, days(6), days(6));
  await utimes(old!, days(8), days(8));
  const again = await Storage.open(dir);
  t.after(() => again.close());
  assert.equal(await again.keptScratch('young'), young);
  assert.deepEqual(await readdir(young!), ['checkpoint']);
  for (const folder of [old!, done!]) await assert.rejects(readdir(folder), { code: 'ENOENT' });
});
