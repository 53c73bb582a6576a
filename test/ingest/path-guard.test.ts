/** Files and folders in an allowed folder that become links after the server has looked at them. */
import assert from 'node:assert/strict';
import { renameSync, symlinkSync } from 'node:fs';
import { mkdir, readdir, realpath, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { writeLandsatLikeScene } from '../../data-samples/index.js';
import { IngestPool, type IngestResults, ingestProcess, PathGuard } from '../../src/ingest/index.js';
import { FailedWithResults } from '../../src/jobs/index.js';
import { Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const AT = { collection: 'test', datetime: '2024-06-01T10:00:00Z', precision: 6 };

/** An allowed folder, a file outside of it, and the ingest process as a job runs it. */
async function setUp(t: TestContext) {
  const folder = await realpath(await tempFolder(t));
  const allowed = join(folder, 'allowed');
  await mkdir(allowed);
  const storage = await Storage.open(join(folder, 'data'));
  const workers = new IngestPool(1, 256e6);
  atEnd(t, async () => {
    await workers.close();
    await storage.close();
  });
  const run = async (
    inputs: object,
    onMessage: (text: string) => void = () => undefined,
    allowedFolders = [allowed],
  ) => {
    const process = ingestProcess({ storage, workers, memory: 256e6, allowedFolders });
    const { signal } = new AbortController();
    const nothing = () => undefined;
    const job = {
      id: 'job',
      signal,
      progress: nothing,
      message: onMessage,
      log: nothing,
      partial: nothing,
      isMine: () => true,
      allGather: async <T>(word: T) => [word],
      file: async () => {},
    };
    const results = await process.run({ ...inputs, fenced: true }, job).catch((error) => {
      if (error instanceof FailedWithResults) return error.results;
      throw error;
    });
    return results as IngestResults;
  };
  const secret = await writeTestScene(join(folder, 'secret.tif'));
  return { folder, allowed, secret, run };
}

const codes = ({ failed }: IngestResults) => failed.map(({ code }) => code);

test('a file that became a link since it was checked is not read', async (t) => {
  const { allowed, secret, run } = await setUp(t);
  const path = await writeTestScene(join(allowed, 'scene.tif'));
  assert.equal((await run({ ...AT, paths: [path] })).scenes.length, 1);

  const paths = [await new PathGuard([allowed]).resolveAllowed(path)];
  await rm(path);
  await symlink(secret, path);
  const results = await run({ ...AT, id: 'other', paths });
  assert.deepEqual([results.scenes, codes(results)], [[], ['TW_INGEST_OUTSIDE']]);
});

test('a job that resumes on a server with other allowed folders reads only from those', async (t) => {
  const { folder, allowed, run } = await setUp(t);
  const paths = [await writeTestScene(join(allowed, 'scene.tif'))];
  const results = await run({ ...AT, paths }, undefined, [join(folder, 'other')]);
  assert.deepEqual([results.scenes, codes(results)], [[], ['TW_INGEST_OUTSIDE']]);
});

test('a product whose band or folder became a link since it was checked is not read', async (t) => {
  const { folder, allowed, secret, run } = await setUp(t);
  const product = join(allowed, 'product');
  await writeLandsatLikeScene(product);
  assert.equal((await run({ paths: [product] })).scenes.length, 1);

  const band = (await readdir(product)).find((name) => name.endsWith('_B4.TIF')) as string;
  await rename(join(product, band), join(folder, band));
  await symlink(secret, join(product, band));
  const { failed } = await run({ paths: [product] });
  assert.deepEqual(codes({ failed } as IngestResults), ['TW_INGEST_OUTSIDE']);
  assert.ok(failed[0]!.message.includes(join(product, band)), failed[0]!.message);
  assert.deepEqual(codes(await run({ paths: [allowed] })), ['TW_INGEST_OUTSIDE']);

  await rm(join(product, band));
  await rename(join(folder, band), join(product, band));
  await rename(product, join(folder, 'elsewhere'));
  await symlink(join(folder, 'elsewhere'), product);
  assert.deepEqual(codes(await run({ paths: [product] })), ['TW_INGEST_OUTSIDE']);
});

test('a scene whose file becomes a link while it is cut is not kept, even if it was one only for a moment', async (t) => {
  const { folder, allowed, secret, run } = await setUp(t);
  const path = await writeTestScene(join(allowed, 'scene.tif'));
  const away = join(folder, 'away.tif');
  const swapAndBack = () => {
    renameSync(path, away);
    renameSync(away, path);
  };
  const swap = () => {
    renameSync(path, away);
    symlinkSync(secret, path);
  };
  for (const trick of [swapAndBack, swap]) {
    // The job says the name of the scene when it is described and not yet cut.
    const results = await run({ ...AT, paths: [path] }, (text) => {
      if (text === path) trick();
    });
    assert.deepEqual([results.scenes, codes(results)], [[], ['TW_INGEST_OUTSIDE']], trick.name);
  }
});
