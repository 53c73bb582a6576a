/** Every function of the store that makes a path from a name refuses hostile names, and changes nothing. */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { LocalJobService } from '../../../src/jobs/index.js';
import { checkedName } from '../../../src/storage/file-names.js';
import { Storage } from '../../../src/storage/index.js';
import type { NewModel } from '../../../src/storage/models.js';
import { atEnd } from '../../support/at-end.js';
import { HOSTILE_NAMES } from '../../support/hostile-names.js';
import { tempFolder } from '../../support/temp.js';
import { COLLECTION } from '../sample-scenes.js';

const GROUP = { name: '10m', file: '10m', bytes: 1, crc32: 1 };
const TILE = {
  ...{ id: 'c_s_g9q8yy', grid: 'geohash' as const, geocode: '9q8yy', version: '000000000aaaaaa' },
  groups: [GROUP],
};
const MODEL: NewModel = {
  model: 'm',
  collection: 'c',
  grid: 'geohash' as const,
  geocode: '9q8yy',
  version: '000000000aaaaaa',
  card: {},
};

/** The functions, by the meaning of the name. */
const USES: Record<string, (storage: Storage, name: string) => unknown> = {
  'a new scratch folder': (storage, name) => storage.scratch.make(name),
  'the scratch folder of a job': (storage, name) => storage.scratch.makeForJob(name),
  'a scratch folder that is kept': (storage, name) => storage.scratch.makePersistent(name),
  'a scratch folder to sync': (storage, name) => storage.scratch.sync(name),
  'a scratch folder to remove': (storage, name) => storage.scratch.remove(name),
  'a path in the scratch folder': (storage, name) =>
    storage.scratch.remove(`${join(storage.dir, 'scratch')}/${name}`),
  'the results of a job': (storage, name) => storage.results.makeFolder(name),
  'a job with a result file': (storage, name) => storage.results.path(name, 'a.tif'),
  'a result file': (storage, name) => storage.results.path('000000000aaaaaa', name),
  'a tile': (storage, name) => storage.tileImage({ ...TILE, id: name }, '10m'),
  'a cell': (storage, name) => storage.tileImage({ ...TILE, geocode: name }, '10m'),
  'a grid': (storage, name) => storage.tileImage({ ...TILE, grid: name as 'geohash' }, '10m'),
  'the version of a tile': (storage, name) => storage.tileImage({ ...TILE, version: name }, '10m'),
  'a band group': (storage, name) => storage.tileImage(TILE, name),
  'a file of a tile': (storage, name) =>
    storage.tileImage({ ...TILE, groups: [{ ...GROUP, file: name }] }, '10m'),
  'a model': (storage, name) => storage.models.path({ ...MODEL, model: name }, 'card.json'),
  'the collection of a model': (storage, name) =>
    storage.models.path({ ...MODEL, collection: name }, 'card.json'),
  'the cell of a model': (storage, name) => storage.models.path({ ...MODEL, geocode: name }, 'card.json'),
  'the grid of a model': (storage, name) =>
    storage.models.path({ ...MODEL, grid: name as 'geohash' }, 'card.json'),
  'the version of a model': (storage, name) => storage.models.path({ ...MODEL, version: name }, 'card.json'),
  'a model file': (storage, name) => storage.models.path(MODEL, name),
  'a new model': (storage, name) => storage.models.put({ ...MODEL, model: name }, {}),
  'a file of a new model': (storage, name) => storage.models.put(MODEL, { [name]: new Uint8Array(1) }),
  'a new collection': (storage, name) => storage.beginScene({ ...COLLECTION, id: name }, 's', ['9q8yy']),
  'a new scene': (storage, name) => storage.beginScene(COLLECTION, name, ['9q8yy']),
  'a cell of a new scene': async (storage, name) => {
    const write = await storage.beginScene(COLLECTION, 's', [name]);
    await write.abort();
  },
};

for (const [what, use] of Object.entries(USES))
  test(`a hostile name is refused as ${what}`, async (t) => {
    const folder = await tempFolder(t);
    const storage = await Storage.open(join(folder, 'outer', 'data'), { reserve: 0 });
    atEnd(t, () => storage.close());
    for (const part of ['tiles', 'models', 'scratch', 'results', '..']) {
      await mkdir(join(storage.dir, part), { recursive: true });
      await writeFile(join(storage.dir, part, 'precious'), '');
    }
    const names = async () =>
      (await readdir(folder, { recursive: true })).filter((name) => !name.includes('catalogue/')).sort();
    const before = await names();
    for (const name of HOSTILE_NAMES)
      await assert.rejects(
        async () => use(storage, name),
        { code: 'TW_STORAGE_BAD_NAME', status: 400 },
        JSON.stringify(name.slice(0, 50)),
      );
    assert.deepEqual(await names(), before);
  });

test('no job, and no file of a job, has a hostile name', async (t) => {
  const storage = await Storage.open(await tempFolder(t), { reserve: 0 });
  atEnd(t, () => storage.close());
  const jobs = await LocalJobService.open(storage, []);
  atEnd(t, () => jobs.close());
  for (const name of HOSTILE_NAMES) {
    for (const ask of [
      () => jobs.get(name),
      () => jobs.log(name),
      () => jobs.wait(name),
      () => jobs.cancel(name),
      () => jobs.subscribe(name, () => undefined),
    ])
      await assert.rejects(async () => ask(), { code: 'TW_JOB_NOT_FOUND', status: 404 });
    for (const [job, file] of [
      [name, 'a.tif'],
      ['000000000aaaaaa', name],
    ] as const)
      await assert.rejects(jobs.file(job, file), { code: 'TW_STORAGE_BAD_NAME', status: 400 });
  }
});

test('a value that is not a text is not a name, even if its text is one', () => {
  for (const value of [undefined, null, true, 1234567, ['version'], { toString: () => 'version' }])
    assert.throws(() => checkedName('version', value as string), { code: 'TW_STORAGE_BAD_NAME' });
});
