/** A texture is deleted with its tile, and can be computed again if its record is damaged. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toArray } from '../../../src/async/index.js';
import { Storage, type TextureRecord, type TileRecord, verify } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { damageRecords } from '../../support/damage.js';
import { COLLECTION, cellsOf, tempFolder, writeDerived, writeScene } from '../sample-scenes.js';

const FIRST = 7;
// Deliveries with other cells, and some of the cells of the first.
const SECOND = 8;

function textureOf({ collection, grid, geocode, id, version, start }: TileRecord): TextureRecord {
  return { collection, grid, geocode, tile: id, version, start, values: [1, 2, 3] };
}

async function withTextures(dir: string): Promise<Storage> {
  const storage = await Storage.open(dir);
  await writeScene(storage, 'a', FIRST);
  const tiles = await toArray(storage.catalogue.tiles.values());
  await storage.textures.put(tiles.map(textureOf));
  const scaling = { means: [0, 0, 0], deviations: [1, 1, 1] };
  const places = tiles.length;
  await storage.textures.putClustering({
    collection: COLLECTION.id,
    scaling,
    centres: [[1, 2, 3]],
    curve: [],
    seed: 1,
    places,
    createdAt: 0,
  });
  return storage;
}

const geocodesOf = async (storage: Storage) =>
  (await toArray(storage.textures.list(COLLECTION.id))).map(({ geocode }) => geocode);

test('a delivery deletes the textures of the tiles that it replaces or removes', async (t) => {
  const storage = await withTextures(await tempFolder(t));
  atEnd(t, () => storage.close());
  assert.deepEqual(await geocodesOf(storage), cellsOf(FIRST).toSorted());
  // Another scene of the same cells does not change them.
  await writeScene(storage, 'b', SECOND);
  assert.deepEqual(await geocodesOf(storage), cellsOf(FIRST).toSorted());
  await writeScene(storage, 'a', SECOND);
  assert.deepEqual(await geocodesOf(storage), []);
});

test('a texture of a tile that is deleted or replaced while it is computed is not stored', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  await writeScene(storage, 'a', FIRST);
  const computed = (await toArray(storage.catalogue.tiles.values())).map(textureOf);
  const [deleted, ...others] = computed;
  await storage.collections.deleteTile(deleted!.tile);
  assert.equal(await storage.textures.put(computed), others.length);
  assert.deepEqual(await geocodesOf(storage), others.map(({ geocode }) => geocode).toSorted());
  await writeScene(storage, 'a', FIRST);
  assert.equal(await storage.textures.put(computed), 0);
  // Both begin at the same time. In either order of the commits, nothing stays.
  const again = (await toArray(storage.catalogue.tiles.values())).map(textureOf);
  await Promise.all([storage.textures.put(again), storage.collections.deleteScene(COLLECTION.id, 'a')]);
  assert.deepEqual(await geocodesOf(storage), []);
});

test('a new version of a derived tile deletes the texture of the former one', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  await writeScene(storage, 'a', FIRST);
  await writeDerived(storage, 1);
  const derived = (await toArray(storage.catalogue.tiles.values())).filter(({ source }) => source !== 'raw');
  await storage.textures.put(derived.map(textureOf));
  assert.equal((await geocodesOf(storage)).length, derived.length);
  await writeDerived(storage, 1);
  assert.deepEqual(await geocodesOf(storage), []);
});

test('verify lists a damaged texture, which reads as missing, and can be replaced and deleted', async (t) => {
  const dir = await tempFolder(t);
  await (await withTextures(dir)).close();
  const [cell, ...others] = cellsOf(FIRST).toSorted();
  const textures = [cell, others[0]].map((one) => `!textures!${COLLECTION.id}/${one}`);
  await damageRecords(dir, ...textures, `!clusterings!${COLLECTION.id}`);

  const storage = await Storage.open(dir);
  atEnd(t, () => storage.close());
  const problems = async () => (await verify(storage)).problems.map(({ kind, what }) => `${kind} ${what}`);
  assert.deepEqual((await problems()).toSorted(), [
    `corrupt-record clusterings ${COLLECTION.id}`,
    `corrupt-record textures ${COLLECTION.id}/${cell}`,
    `corrupt-record textures ${COLLECTION.id}/${others[0]}`,
  ]);
  assert.deepEqual(await geocodesOf(storage), others.slice(1));
  assert.equal(await storage.textures.getClustering(COLLECTION.id), undefined);
  const place = { collection: COLLECTION.id, geocode: cell! };
  assert.deepEqual(await storage.textures.getMany([place]), [undefined]);

  const tiles = await toArray(storage.catalogue.tiles.values());
  await storage.textures.put(tiles.filter(({ geocode }) => geocode === cell).map(textureOf));
  assert.equal((await storage.textures.getMany([place]))[0]!.geocode, cell);
  await storage.collections.deleteScene(COLLECTION.id, 'a');
  assert.deepEqual(await problems(), [`corrupt-record clusterings ${COLLECTION.id}`]);
  await storage.collections.delete(COLLECTION.id);
  assert.deepEqual(await problems(), []);
});

test('a collection is deleted with any number of textures, and those of others stay', async (t) => {
  const storage = await withTextures(await tempFolder(t));
  atEnd(t, () => storage.close());
  const { textures } = storage.catalogue;
  const [first] = await toArray(textures.values());
  const keys = Array.from({ length: 2100 }, (_, number) => `${COLLECTION.id}/x${number}`);
  const other = `${COLLECTION.id}b/x`;
  await storage.catalogue.write([...keys, other].map((key) => textures.set(key, first!)));
  await storage.collections.delete(COLLECTION.id);
  assert.deepEqual(await toArray(textures.keys()), [other]);
});
