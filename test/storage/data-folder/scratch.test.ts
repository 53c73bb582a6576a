import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Storage } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { storageProblems } from '../../support/storage-problems.js';
import { tempFolder } from '../../support/temp.js';

test('a scratch folder is new, ignored by verify, and removed by a restart', async (t) => {
  const dir = await tempFolder(t);
  const storage = await Storage.open(dir);
  const folders = await Promise.all(
    ['upload', 'upload', undefined].map((name) => storage.scratch.make(name)),
  );
  assert.equal(new Set(folders).size, 3);
  for (const folder of folders) {
    assert.deepEqual(await readdir(folder), []);
    await writeFile(join(folder, 'a.tif'), 'x');
  }
  await assert.rejects(storage.scratch.make('../x'), { code: 'TW_STORAGE_BAD_NAME' });
  assert.deepEqual(await storageProblems(storage), []);
  await storage.close();
  const again = await Storage.open(dir);
  atEnd(t, () => again.close());
  for (const folder of folders) await assert.rejects(readdir(folder), { code: 'ENOENT' });
});

test('persistent scratch folders survive a restart until the work is done', async (t) => {
  const dir = await tempFolder(t);
  const storage = await Storage.open(dir);
  const [left, done] = await Promise.all(['left', 'done'].map((one) => storage.scratch.makePersistent(one)));
  for (const folder of [left!, done!]) await writeFile(join(folder, 'checkpoint'), 'x');
  assert.equal(await storage.scratch.makePersistent('left'), left);
  await storage.scratch.remove(done!);
  await storage.close();
  const again = await Storage.open(dir);
  atEnd(t, () => again.close());
  assert.equal(await again.scratch.makePersistent('left'), left);
  assert.deepEqual(await readdir(left!), ['checkpoint']);
  await assert.rejects(readdir(done!), { code: 'ENOENT' });
});
