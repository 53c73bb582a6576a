/** The files of the patches that the places of a region share. */
import assert from 'node:assert/strict';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { shareSamples } from '../../../src/training/regional-mode.js';
import { tempFolder } from '../../support/temp.js';

for (const file of ['own-samples', 'samples'])
  test(`a full disk is named if ${file} does not fit`, { skip: process.platform !== 'linux' }, async (t) => {
    const folder = await tempFolder(t);
    // Every write to this device fails with ENOSPC.
    await symlink('/dev/full', join(folder, `${file}.new`));
    const storage = { dir: 'data', scratch: { makeForJob: async () => folder } };
    const job = { id: 'a', allGather: async <T>(value: T) => [value] };
    const sharing = { model: 'ndvi', cells: ['u2'], sample: async () => [] };
    await assert.rejects(shareSamples({ storage: storage as never }, job, sharing), {
      code: 'TW_STORAGE_FULL',
      message: /on the disk of data/,
    });
  });
