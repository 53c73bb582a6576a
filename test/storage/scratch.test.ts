import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
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
