/** The texture index is cached until something changes. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { toArray } from '../../../src/async/index.js';
import { Storage, type TextureRecord } from '../../../src/storage/index.js';
import { TextureIndex } from '../../../src/training/index.js';
import { COLLECTION, cellsOf, tempFolder, writeScene } from '../../storage/sample-scenes.js';
import { atEnd } from '../../support/at-end.js';

/** Two deliveries of three and two cells, none in common. */
const [FIRST, SECOND] = [7, 1];
const { id: collection } = COLLECTION;
/** The texture value of each cell. */
const VALUES: Record<string, number> = { '9q8yv': 0, '9q8yz': 1, '9q9p1': 3, c2b2n: 6, c2b2p: 10 };
const OWN = '9q8yz';

async function withCells(t: TestContext) {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  await writeScene(storage, 'a', FIRST);
  await writeScene(storage, 'b', SECOND);
  assert.deepEqual([...cellsOf(FIRST), ...cellsOf(SECOND)].sort(), Object.keys(VALUES).sort());
  const put = async (values: Record<string, number>) => {
    const tiles = await toArray(storage.catalogue.tiles.values());
    const looked = tiles.filter(({ geocode }) => geocode in values);
    await storage.textures.put(
      looked.map(({ grid, geocode, id: tile, version, start }): TextureRecord => {
        return { collection, grid, geocode, tile, version, start, values: [values[geocode]!] };
      }),
    );
  };
  const cluster = (centres: number[]) =>
    storage.textures.putClustering({
      ...{ collection, scaling: { means: [0], deviations: [2] }, centres: centres.map((one) => [one]) },
      ...{ curve: [], seed: 1, places: 5, createdAt: 0 },
    });
  return { storage, put, cluster };
}

const nearOwn = async (index: TextureIndex) => (await index.nearest(collection, OWN, 10))?.similar;
const geocodes = (cells: { geocode: string }[] | undefined) => cells?.map(({ geocode }) => geocode);

test('every change of textures, clusters, tiles, scenes and the collection shows in the next answer', async (t) => {
  const { storage, put, cluster } = await withCells(t);
  const index = new TextureIndex(storage);
  assert.equal(await nearOwn(index), undefined);

  await put(VALUES);
  assert.deepEqual(geocodes(await nearOwn(index)), ['9q8yv', '9q9p1', 'c2b2n', 'c2b2p']);
  assert.deepEqual(await index.clusterMembership(collection, OWN), {});
  await put({ '9q8yv': 100 });
  assert.deepEqual(geocodes(await nearOwn(index)), ['9q9p1', 'c2b2n', 'c2b2p', '9q8yv']);

  await cluster([0, 5, 50]);
  assert.deepEqual(
    (await nearOwn(index))?.map(({ geocode, distance, cluster }) => [geocode, distance, cluster]),
    [
      ['9q9p1', 1, 0],
      ['c2b2n', 2.5, 1],
      ['c2b2p', 4.5, 1],
      ['9q8yv', 49.5, 2],
    ],
  );
  assert.deepEqual(await index.clusterMembership(collection, OWN), { cluster: 0, fromCentre: 0.5 });
  await cluster([1, 0.5]);
  assert.deepEqual(await index.clusterMembership(collection, OWN), { cluster: 1, fromCentre: 0 });

  await storage.collections.deleteScene(collection, 'b');
  assert.deepEqual(geocodes(await nearOwn(index)), ['9q9p1', '9q8yv']);
  const tiles = await toArray(storage.catalogue.tiles.values());
  await storage.collections.deleteTile(tiles.find(({ geocode }) => geocode === '9q9p1')!.id);
  assert.deepEqual(geocodes(await index.cells(collection)), ['9q8yv', OWN]);

  await storage.collections.delete(collection);
  assert.equal(await nearOwn(index), undefined);
  assert.deepEqual(await index.cells(collection), []);
  await writeScene(storage, 'c', FIRST);
  await put(VALUES);
  assert.deepEqual(geocodes(await nearOwn(index)), ['9q8yv', '9q9p1']);
  assert.deepEqual(
    await index.clusterMembership(collection, OWN),
    {},
    'the clusters of the former collection',
  );
});

test('concurrent requests share one read; changes during the read show in the next answer', async (t) => {
  const { storage, put } = await withCells(t);
  await put(VALUES);
  // The first read has returned all textures, but ends only after the event `released`.
  const steps = new EventEmitter();
  const [isRead, isReleased] = [once(steps, 'read'), once(steps, 'released')];
  const textures = storage.textures.list.bind(storage.textures);
  const readings = t.mock.method(storage.textures, 'list', textures);
  readings.mock.mockImplementationOnce(async function* (id) {
    yield* textures(id);
    steps.emit('read');
    await isReleased;
  });
  const index = new TextureIndex(storage);
  const early = [nearOwn(index), nearOwn(index)];
  await isRead;
  assert.equal(readings.mock.callCount(), 1);

  await put({ '9q8yv': 100 });
  const late = await Promise.all([nearOwn(index), nearOwn(index)]);
  steps.emit('released');
  for (const cells of await Promise.all(early)) assert.equal(cells![0]!.geocode, '9q8yv');
  for (const cells of [...late, await nearOwn(index)]) assert.equal(cells![0]!.geocode, '9q9p1');
  assert.equal(readings.mock.callCount(), 2);
});

test('a failed read rejects its callers; the next call reads again', async (t) => {
  const { storage, put } = await withCells(t);
  await put(VALUES);
  const readings = t.mock.method(storage.textures, 'list');
  readings.mock.mockImplementationOnce(() => {
    throw new Error('cannot be read');
  });
  const index = new TextureIndex(storage);
  await Promise.all([1, 2].map(() => assert.rejects(nearOwn(index), /cannot be read/)));
  assert.equal((await nearOwn(index))!.length, 4);
  assert.equal(readings.mock.callCount(), 2);
});
