import assert from 'node:assert/strict';
import { access, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  bestVersion,
  type ModelRecord,
  newVersion,
  Storage,
  verify,
  versionsOf,
} from '../../src/storage/index.js';
import type { NewModel } from '../../src/storage/models.js';
import { atEnd } from '../support/at-end.js';
import { storageProblems } from '../support/storage-problems.js';
import {
  bytesOf,
  COLLECTION,
  cellsOf,
  factsOf,
  stageTile,
  tempFolder,
  tileRecord,
  writeScene,
} from './sample-scenes.js';

async function openStorage(t: TestContext, sweepDelay?: number): Promise<Storage> {
  const storage = await Storage.open(await tempFolder(t), { sweepDelay });
  atEnd(t, () => storage.close());
  return storage;
}

const idsOf = (scene: string, n: number) => cellsOf(n).map((cell) => `${COLLECTION.id}_${scene}_g${cell}`);

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function versionFolders(storage: Storage, top: string): Promise<string[]> {
  const names = await readdir(join(storage.dir, top), { recursive: true });
  return names.filter((name) => name.split('/').length === (top === 'tiles' ? 4 : 5)).sort();
}

test('many records are returned in the order of their ids, without absent ones', async (t) => {
  const storage = await openStorage(t);
  await writeScene(storage, 'a', 3);
  await writeScene(storage, 'b', 14);
  const stored = [...idsOf('a', 3), ...idsOf('b', 14)];
  const ids = Array.from({ length: 1000 }, (_, i) => stored[(i * 7) % stored.length]!);
  const tiles = await storage.getTiles(ids.flatMap((id, i) => (i % 100 === 0 ? ['absent', id] : [id])));
  assert.deepEqual(
    tiles.map(({ id }) => id),
    ids,
  );
});

test('opening twice keeps the node and all its data', async (t) => {
  const dir = await tempFolder(t);
  const first = await Storage.open(dir);
  await writeScene(first, 'a', 3);
  const before = await first.stats();
  await first.close();
  const second = await Storage.open(dir);
  atEnd(t, () => second.close());
  assert.equal(second.folder.node.id, first.folder.node.id);
  assert.deepEqual(await second.stats(), before);
  assert.deepEqual(before, {
    collections: 1,
    scenes: 1,
    tiles: cellsOf(3).length,
    models: 0,
    sweepError: null,
    snapshotError: null,
    writeError: null,
  });
  assert.deepEqual(await storageProblems(second), []);
});

test('no part of a scene is visible before its commit', async (t) => {
  const storage = await openStorage(t);
  const write = await storage.beginScene(COLLECTION, 'a', ['9q8yy', '9q8yz', 'zzzzz']);
  for (const cell of ['9q8yy', '9q8yz']) await stageTile(write, 1, cell);
  await write.publish(['9q8yy', '9q8yz']);
  assert.equal(storage.index.size, 0);
  assert.equal(await storage.getScene(COLLECTION.id, 'a'), undefined);
  assert.equal(await storage.catalogue.tiles.get(write.tileId('9q8yy')), undefined);
  assert.deepEqual(await storageProblems(storage), [], 'what is being written is no orphan');

  const tiles = ['9q8yy', '9q8yz'].map((cell) => tileRecord(write, 1, cell));
  const scene = await write.commit(factsOf(1), tiles);
  assert.equal(storage.index.size, 2);
  assert.deepEqual(await storage.getScene(COLLECTION.id, 'a'), scene);
  assert.deepEqual(await storage.getTiles([tiles[1]!.id, 'gone', tiles[0]!.id]), [tiles[1], tiles[0]]);
  assert.deepEqual(
    (await collect(storage.catalogue.scenes.values({ prefix: `${COLLECTION.id}/` }))).map((s) => s.id),
    ['a'],
  );
  assert.deepEqual(await collect(storage.catalogue.pending.keys()), []);
});

test('an aborted write leaves no file and no record, and the scene can be written again', async (t) => {
  const storage = await openStorage(t);
  const write = await storage.beginScene(COLLECTION, 'a', ['9q8yy', '9q8yz']);
  await stageTile(write, 1, '9q8yy');
  await stageTile(write, 1, '9q8yz');
  await write.publish(['9q8yz']);
  await write.abort();
  assert.deepEqual(await readdir(join(storage.dir, 'tiles'), { recursive: true }), []);
  assert.deepEqual(await collect(storage.catalogue.pending.keys()), []);
  await writeScene(storage, 'a', 2);
  assert.equal(storage.index.size, cellsOf(2).length);
});

test('a new delivery replaces every tile of the old one, even those of cells that it lacks', async (t) => {
  const storage = await openStorage(t, 0);
  const [old, now] = [5, 6];
  assert.ok(cellsOf(old).some((cell) => !cellsOf(now).includes(cell)));
  await writeScene(storage, 'a', old);
  await writeScene(storage, 'b', old);
  await writeScene(storage, 'a', now);
  const ids = await collect(storage.catalogue.tiles.keys());
  assert.deepEqual(ids, [...idsOf('a', now), ...idsOf('b', old)].sort());
  assert.equal(storage.index.size, ids.length);
  await storage.collectOldVersions();
  assert.equal(
    (await versionFolders(storage, 'tiles')).length,
    ids.length,
    'only current versions have files',
  );
  assert.deepEqual(await storageProblems(storage), []);
});

test('files of a replaced version stay until the delay is over, and are then removed, even by a restart', async (t) => {
  const dir = await tempFolder(t);
  const storage = await Storage.open(dir, { sweepDelay: 3_600_000 });
  await writeScene(storage, 'a', 1);
  const [tile] = await storage.getTiles(idsOf('a', 1));
  await writeScene(storage, 'a', 2);
  await storage.collectOldVersions();
  assert.deepEqual(
    await readFile(storage.tileImage(tile!, '10m').path),
    bytesOf(1, tile!.geocode, '10m'),
    'who found it may read it',
  );
  assert.deepEqual(await storageProblems(storage), [], 'superseded versions are no orphans');
  await storage.close();

  const later = await Storage.open(dir, { sweepDelay: 0 });
  atEnd(t, () => later.close());
  await assert.rejects(access(later.tileImage(tile!, '10m').path), { code: 'ENOENT' });
  assert.deepEqual(await collect(later.catalogue.superseded.keys()), []);
  assert.deepEqual(await storageProblems(later), []);
});

test('a scene is written by one ingest at a time', async (t) => {
  const storage = await openStorage(t);
  const begun = await Promise.allSettled([1, 2, 3].map(() => storage.beginScene(COLLECTION, 'a', ['9q8yy'])));
  const busy = begun.filter((result) => result.status === 'rejected');
  assert.equal(busy.length, 2);
  for (const { reason } of busy) {
    assert.equal(reason.code, 'TW_STORAGE_SCENE_BUSY');
    assert.equal(reason.status, 409);
  }
  await storage.beginScene(COLLECTION, 'b', ['9q8yy']);
});

test('a write out of order is refused and commits nothing', async (t) => {
  const storage = await openStorage(t);
  const misuse = { code: 'TW_STORAGE_WRITE_ORDER' };
  const write = await storage.beginScene(COLLECTION, 'a', ['9q8yy', '9q8yz']);
  await assert.rejects(write.stagingFolder('drt2z'), misuse, 'a cell that is not pending');
  await assert.rejects(write.publish(['9q8yy']), misuse, 'not staged');
  await stageTile(write, 1, '9q8yy');
  await assert.rejects(write.commit(factsOf(1), [tileRecord(write, 1, '9q8yy')]), misuse, 'not published');
  await write.publish(['9q8yy']);
  await assert.rejects(write.commit(factsOf(1), []), misuse, 'a published tile is left out');
  const foreign = { ...tileRecord(write, 1, '9q8yy'), version: newVersion() };
  await assert.rejects(write.commit(factsOf(1), [foreign]), misuse, 'another version');
  assert.equal(storage.index.size, 0);
  await write.commit(factsOf(1), [tileRecord(write, 1, '9q8yy')]);
  await assert.rejects(write.commit(factsOf(1), [tileRecord(write, 1, '9q8yy')]), misuse, 'twice');
  await write.abort();
  assert.equal(storage.index.size, 1, 'abort after commit does nothing');
});

test('a collection is updated, except for its cells, serially', async (t) => {
  const storage = await openStorage(t);
  await writeScene(storage, 'first', 1);
  const { id } = COLLECTION;
  const add = (x: number) =>
    storage.collections.update(id, ({ pixelSizes = [], ...record }) => ({
      ...record,
      pixelSizes: [...pixelSizes, [{ x, y: x }]],
    }));
  await Promise.all([10, 20, 60].map(add));
  assert.deepEqual(
    (await storage.catalogue.collections.get(id))?.pixelSizes?.flat().map(({ x }) => x),
    [10, 20, 60],
  );
  await assert.rejects(
    storage.collections.update(id, (record) => ({ ...record, precision: 3 })),
    { code: 'TW_STORAGE_COLLECTION_FIXED' },
  );
  await assert.rejects(
    storage.collections.update('absent', (record) => record),
    { code: 'TW_STORAGE_NO_COLLECTION' },
  );
});

test('the first scene fixes grid and precision of a collection', async (t) => {
  const storage = await openStorage(t);
  assert.equal(await storage.catalogue.collections.get(COLLECTION.id), undefined);
  await writeScene(storage, 'first', 1);
  assert.equal((await storage.catalogue.collections.get(COLLECTION.id))?.title, COLLECTION.title);
  const again = await storage.collectionFor({ ...COLLECTION, title: 'other words' });
  assert.equal(again.title, COLLECTION.title);
  for (const other of [{ precision: 6 }, { grid: 'quadtile', precision: 12 } as const])
    await assert.rejects(storage.beginScene({ ...COLLECTION, ...other }, 'other', ['9q8yy']), {
      code: 'TW_STORAGE_COLLECTION_FIXED',
      status: 409,
      message: /--collection/,
    });
  const racing = await Promise.allSettled(
    [5, 6, 7].map(async (precision) => {
      const write = await storage.beginScene({ ...COLLECTION, id: 'new', precision }, `s${precision}`, [
        '9q8yy',
      ]);
      await stageTile(write, 1, '9q8yy');
      await write.publish(['9q8yy']);
      return write.commit(factsOf(1), [tileRecord(write, 1, '9q8yy')]);
    }),
  );
  assert.deepEqual(racing.map((result) => result.status).sort(), ['fulfilled', 'rejected', 'rejected']);
});

test('a name that cannot be part of a path is refused', async (t) => {
  const storage = await openStorage(t);
  const bad = { code: 'TW_STORAGE_BAD_NAME', status: 400 };
  const write = await storage.beginScene(COLLECTION, 'ok', ['9q8yy']);
  const tile = tileRecord(write, 1, '9q8yy');
  for (const name of ['..', '../x', 'a/b', '', '.hidden', 'a\0', 'a\\b', 'x'.repeat(300), '-rf', 'ü']) {
    await assert.rejects(storage.beginScene(COLLECTION, name, ['9q8yy']), bad);
    await assert.rejects(storage.beginScene(COLLECTION, 'scene', [name]), bad);
    await assert.rejects(storage.collectionFor({ ...COLLECTION, id: name }), bad);
    assert.throws(() => storage.tileImage(tile, name), bad);
    assert.throws(() => storage.tileImage({ ...tile, id: name }, '10m'), bad);
    assert.throws(() => storage.tileImage({ ...tile, geocode: name }, '10m'), bad);
    assert.throws(() => storage.tileImage({ ...tile, version: name }, '10m'), bad);
    await assert.rejects(storage.models.put(modelOf(name), {}), bad);
    await assert.rejects(storage.models.put(modelOf('ndvi'), { [name]: Buffer.of(1) }), bad);
  }
  await assert.rejects(storage.beginScene(COLLECTION, 'scene', ['9q8ya']), bad, 'a is no geohash digit');
});

function modelOf(model: string): NewModel {
  const card = { epochs: 3 };
  return {
    model,
    collection: COLLECTION.id,
    grid: 'geohash',
    geocode: '9q8yy',
    version: newVersion(),
    card,
  };
}

test('a model is stored with its files, version by version, and verified', async (t) => {
  const storage = await openStorage(t, 0);
  const first = await storage.models.put(modelOf('ndvi'), {
    'weights.bin': Buffer.alloc(5000, 1),
    'card.json': Buffer.from('{}'),
  });
  const second = await storage.models.put(modelOf('ndvi'), { 'weights.bin': Buffer.alloc(6000, 2) });
  assert.deepEqual(await storage.models.get('ndvi_sentinel-2-l2a_g9q8yy'), second);
  assert.deepEqual(await collect(storage.models.scanAll()), [{ key: second.id, record: second }]);
  assert.deepEqual(versionsOf(second).slice(1), versionsOf(first));
  assert.deepEqual(await readFile(storage.models.path(second, 'weights.bin')), Buffer.alloc(6000, 2));
  assert.deepEqual(await readFile(storage.models.path(first, 'weights.bin')), Buffer.alloc(5000, 1));
  await storage.collectOldVersions();
  assert.equal((await versionFolders(storage, 'models')).length, 2);
  assert.deepEqual(await storageProblems(storage), []);
  for (const version of [first, second]) {
    const path = storage.models.path(version, 'weights.bin');
    const bytes = await readFile(path);
    await writeFile(path, Buffer.alloc(bytes.length, 3));
    const { problems } = await verify(storage);
    assert.deepEqual(
      problems.map(({ kind }) => kind),
      ['checksum'],
    );
    await writeFile(path, bytes);
  }
});

test('a model keeps its five newest versions, the best on the data of the latest, and the best before it', async (t) => {
  const storage = await openStorage(t, 0);
  const put = (error: number, data: string) =>
    storage.models.put(
      { ...modelOf('ndvi'), score: { error, data } },
      { 'weights.bin': Buffer.from([error]) },
    );
  const errorsOf = (model: ModelRecord) => versionsOf(model).map(({ score }) => score?.error);
  let model = await put(1, 'other');
  for (const error of [4, 2, 7, 8, 9, 5, 6]) model = await put(error, 'spring');
  assert.deepEqual(errorsOf(model), [6, 5, 9, 8, 7, 2], 'that on other data does not compare');
  assert.equal(bestVersion(versionsOf(model)).score?.error, 2);
  model = await put(2, 'spring');
  assert.deepEqual(errorsOf(model), [2, 6, 5, 9, 8, 2]);
  assert.equal(bestVersion(versionsOf(model)).version, model.version, 'of two as good ones the newer');
  await storage.collectOldVersions();
  assert.deepEqual(
    (await versionFolders(storage, 'models')).sort(),
    versionsOf(model)
      .map((version) => `ndvi/${COLLECTION.id}/geohash/9q8yy/${version.version}`)
      .sort(),
  );
  model = await put(3, 'summer');
  assert.deepEqual(errorsOf(model), [3, 2, 6, 5, 9]);
  assert.equal(bestVersion(versionsOf(model)).score?.error, 3);
  assert.deepEqual(await storageProblems(storage), []);
});

test('a model record of an older version of the program has one version', async (t) => {
  const storage = await openStorage(t, 0);
  const { former: _, ...old } = await storage.models.put(modelOf('ndvi'), { 'weights.bin': Buffer.of(1) });
  await storage.catalogue.write([storage.catalogue.models.set(old.id, old)]);
  assert.deepEqual(versionsOf((await storage.models.get(old.id))!), [old]);
  assert.deepEqual(await storageProblems(storage), []);
  const scored = { ...modelOf('ndvi'), score: { error: 1, data: 'spring' } };
  const model = await storage.models.put(scored, { 'weights.bin': Buffer.of(2) });
  assert.deepEqual(
    versionsOf(model).map(({ version }) => version),
    [scored.version, old.version],
  );
  assert.equal(bestVersion(versionsOf(model)).version, scored.version);
  assert.equal(await storage.models.delete(old.id, scored.version), 1);
  assert.deepEqual(await storage.models.get(old.id), { ...old, former: [] });
});

test('one version of a model, or all of them, are deleted with their files', async (t) => {
  const storage = await openStorage(t, 0);
  const put = (n: number) => storage.models.put(modelOf('ndvi'), { 'weights.bin': Buffer.of(n) });
  const [first, second, third] = [await put(1), await put(2), await put(3)];
  const { id } = first;
  await assert.rejects(storage.models.delete('none'), { code: 'TW_STORAGE_NO_MODEL', status: 404 });
  for (const version of ['none', 'latest'])
    await assert.rejects(storage.models.delete(id, version), { code: 'TW_STORAGE_NO_MODEL_VERSION' });
  assert.equal(await storage.models.delete(id, third.version), 1);
  assert.deepEqual(await storage.models.get(id), second, 'the newest that is left is the latest');
  assert.equal(await storage.models.delete(id, first.version), 1);
  assert.deepEqual(await storage.models.get(id), { ...second, former: [] });
  await storage.collectOldVersions();
  assert.equal((await versionFolders(storage, 'models')).length, 1);
  await put(4);
  assert.equal(await storage.models.delete(id), 2);
  assert.equal(await storage.models.get(id), undefined);
  await storage.collectOldVersions();
  assert.deepEqual(await versionFolders(storage, 'models'), []);
  assert.deepEqual(await storageProblems(storage), []);
});

test('versions sort in the order they were made', () => {
  const versions = Array.from({ length: 1000 }, () => newVersion());
  assert.deepEqual([...versions].sort(), versions);
  assert.equal(new Set(versions).size, versions.length);
});

test('a tile, scene or collection is deleted with its files, and others stay', async (t) => {
  const storage = await openStorage(t, 0);
  const n = 7;
  assert.ok(cellsOf(n).length > 2);
  for (const scene of ['a', 'a_b', 'c']) await writeScene(storage, scene, n);
  const other = await storage.beginScene({ ...COLLECTION, id: 'sentinel-2-l2a-x' }, 'a', ['9q8yy']);
  await stageTile(other, n, '9q8yy');
  await other.publish(['9q8yy']);
  await other.commit(factsOf(n), [tileRecord(other, n, '9q8yy')]);

  await storage.collections.deleteTile(idsOf('a', n)[0]!);
  assert.deepEqual((await storage.getScene(COLLECTION.id, 'a'))?.geocodes, cellsOf(n).slice(1).sort());
  await assert.rejects(storage.collections.deleteTile(idsOf('a', n)[0]!), {
    code: 'TW_STORAGE_NO_TILE',
    status: 404,
  });
  assert.equal(await storage.collections.deleteScene(COLLECTION.id, 'a'), cellsOf(n).length - 1);
  await assert.rejects(storage.collections.deleteScene(COLLECTION.id, 'a'), {
    code: 'TW_STORAGE_NO_SCENE',
    status: 404,
  });
  for (const id of idsOf('c', n)) await storage.collections.deleteTile(id);
  assert.equal(await storage.getScene(COLLECTION.id, 'c'), undefined, 'the last tile takes the scene along');
  await storage.collectOldVersions();
  assert.deepEqual(
    await collect(storage.catalogue.tiles.keys()),
    [...idsOf('a_b', n), other.tileId('9q8yy')].sort(),
  );
  assert.deepEqual(await storageProblems(storage), []);

  const open = await storage.beginScene(COLLECTION, 'late', ['9q8yy']);
  await stageTile(open, n, '9q8yy');
  await open.publish(['9q8yy']);
  await assert.rejects(storage.collections.delete(COLLECTION.id), {
    code: 'TW_STORAGE_SCENE_BUSY',
    status: 409,
  });
  assert.deepEqual((await storage.getScene(COLLECTION.id, 'a_b'))?.geocodes, [...cellsOf(n)].sort());
  await open.commit(factsOf(n), [tileRecord(open, n, '9q8yy')]);
  assert.equal(await storage.collections.delete(COLLECTION.id), cellsOf(n).length + 1);
  assert.equal(await storage.catalogue.collections.get(COLLECTION.id), undefined);
  await storage.collectOldVersions();
  assert.deepEqual(await collect(storage.catalogue.tiles.keys()), [other.tileId('9q8yy')]);
  assert.equal(storage.index.size, 1);
  assert.equal((await versionFolders(storage, 'tiles')).length, 1);
  assert.deepEqual(await storageProblems(storage), []);
});

test('a scene can be deleted before and after it is written again, but not at the same time', async (t) => {
  const storage = await openStorage(t);
  await writeScene(storage, 'a', 7);
  const busy = { code: 'TW_STORAGE_SCENE_BUSY', status: 409 };
  const write = await storage.beginScene(COLLECTION, 'a', cellsOf(7));
  await assert.rejects(storage.collections.deleteScene(COLLECTION.id, 'a'), busy);
  await assert.rejects(storage.collections.deleteTile(idsOf('a', 7)[0]!), busy);
  await write.abort();
  assert.equal(await storage.collections.deleteScene(COLLECTION.id, 'a'), cellsOf(7).length);
  await writeScene(storage, 'a', 7);
  assert.equal(storage.index.size, cellsOf(7).length, 'a deleted scene comes back');
});
