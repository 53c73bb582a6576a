/** Deletes scenes, tiles and collections, and updates collections. Each commit leaves a consistent state. */
import { type Catalogue, sceneKey } from '../catalogue/index.js';
import { type Commit, type LockManager, type RecordEdit, type WriteLock, withLock } from '../commit/index.js';
import { collectionFixed, collectionNotFound, sceneBusy, sceneNotFound, tileNotFound } from '../errors.js';
import { type TileVersion, tileId } from '../files/index.js';
import type { CollectionRecord, TileRecord } from '../records/index.js';
import { textureDeletions } from './texture-write.js';

const BATCH_TILES = 1000;

async function requireCollection({ collections }: Catalogue, id: string): Promise<CollectionRecord> {
  const collection = await collections.get(id);
  if (!collection) throw collectionNotFound(id);
  return collection;
}

interface Cells {
  grid: string;
  precision: number;
}

/** Returns `fixed` if it has the wanted grid and precision. Throws TW_STORAGE_COLLECTION_FIXED otherwise. */
export function requireSameCells<T extends Cells & { id: string }>(fixed: T, wanted: Cells): T {
  const name = ({ grid, precision }: Cells) => `${grid} cells of precision ${precision}`;
  if (name(fixed) !== name(wanted)) throw collectionFixed(fixed.id, name(fixed), name(wanted));
  return fixed;
}

/** See `Storage.updateCollection`. Throws TW_STORAGE_NO_COLLECTION, TW_STORAGE_COLLECTION_FIXED. */
export function updateCollection(
  locks: LockManager,
  id: string,
  amend: (record: CollectionRecord) => CollectionRecord,
): Promise<CollectionRecord> {
  return withLock(locks.lockShared(), async (lock) => {
    let amended: CollectionRecord | undefined;
    await lock.commit(async () => {
      const record = await requireCollection(locks.catalogue, id);
      amended = amend(record);
      requireSameCells(record, amended);
      const isSame = JSON.stringify(amended) === JSON.stringify(record);
      return isSame ? {} : { edits: [{ table: 'collections', key: id, record: amended }] };
    });
    return amended!;
  });
}

/**
 * The raw tiles of a scene, as its record names them. Their own records are not read, so a scene with a damaged tile
 * can be replaced. If the scene's record is damaged, its tiles are those with intact records that name the scene.
 */
export async function tilesOfScene(
  catalogue: Catalogue,
  { id, grid }: CollectionRecord,
  sceneId: string,
): Promise<TileVersion[]> {
  const [scene] = await catalogue.scenes.scanMany([sceneKey(id, sceneId)]);
  if (!scene) return [];
  if (scene.record) {
    const { geocodes, version } = scene.record;
    return geocodes.map((geocode) => ({ id: tileId(id, sceneId, grid, geocode), grid, geocode, version }));
  }
  const tiles: TileVersion[] = [];
  for await (const { record } of catalogue.tiles.scan({ prefix: `${id}_${sceneId}_` }))
    if (record?.collection === id && record.scene === sceneId && record.source === 'raw') tiles.push(record);
  return tiles;
}

/** Returns the number of deleted tiles. Derived tiles stay. Throws TW_STORAGE_NO_COLLECTION, TW_STORAGE_NO_SCENE. */
export function deleteScene(locks: LockManager, collectionId: string, sceneId: string): Promise<number> {
  const { catalogue } = locks;
  return withLock(locks.lockScene(collectionId, sceneId), async (lock) => {
    const collection = await requireCollection(catalogue, collectionId);
    if (!(await catalogue.scenes.has(sceneKey(collectionId, sceneId))))
      throw sceneNotFound(collectionId, sceneId);
    return removeScene(catalogue, lock, collection, sceneId);
  });
}

async function removeScene(
  catalogue: Catalogue,
  lock: WriteLock,
  collection: CollectionRecord,
  sceneId: string,
): Promise<number> {
  const key = sceneKey(collection.id, sceneId);
  let removed: TileVersion[] = [];
  await lock.commit(async () => {
    removed = await tilesOfScene(catalogue, collection, sceneId);
    const textures = await textureDeletions(catalogue, collection.id, removed);
    return { removed, edits: [{ table: 'scenes', key, record: null }, ...textures] };
  });
  return removed.length;
}

/** Returns the record of a tile, even if another node has it. */
export type GetTile = (id: string) => Promise<TileRecord | undefined>;

/**
 * The same batch removes a raw tile from its scene's record, and deletes that record with the last tile. The scene loses its
 * fingerprint, so the same delivery restores the tile. Throws TW_STORAGE_NO_TILE.
 */
export async function deleteTile(locks: LockManager, id: string, get: GetTile): Promise<void> {
  const { scenes } = locks.catalogue;
  const tile = await get(id);
  if (!tile) throw tileNotFound(id);
  const { collection, scene } = tile;
  const lock = tile.source === 'raw' ? locks.lockScene(collection, scene) : locks.lockShared();
  await withLock(lock, (held) =>
    held.commit(async (): Promise<Commit> => {
      const current = await get(id);
      if (!current) throw tileNotFound(id);
      const key = sceneKey(collection, scene);
      const record = tile.source === 'raw' ? await scenes.get(key) : undefined;
      const textures = await textureDeletions(locks.catalogue, collection, [current]);
      if (!record) return { removed: [current], edits: textures };
      const geocodes = record.geocodes.filter((geocode) => geocode !== current.geocode);
      const left = geocodes.length > 0 ? { ...record, fingerprint: '', geocodes } : null;
      return { removed: [current], edits: [{ table: 'scenes', key, record: left }, ...textures] };
    }),
  );
}

/** The tiles of a collection that have intact records on this node. */
export async function* tilesOfCollection({ tiles }: Catalogue, id: string): AsyncGenerator<TileRecord> {
  for await (const { record } of tiles.scan({ prefix: `${id}_` }))
    if (record?.collection === id) yield record;
}

/**
 * Deletes scene by scene, then the derived tiles, which `tilesLeft` returns, then the collection: after an interruption, the
 * rest is consistent and can be deleted again. Models stay. Returns the number of deleted tiles. Throws
 * TW_STORAGE_NO_COLLECTION, TW_STORAGE_SCENE_BUSY.
 */
export function deleteCollection(
  locks: LockManager,
  id: string,
  tilesLeft: () => AsyncIterable<TileRecord>,
): Promise<number> {
  const { catalogue } = locks;
  return withLock(locks.lockCollection(id), async (lock) => {
    const { scenes } = catalogue;
    const collection = await requireCollection(catalogue, id);
    const prefix = sceneKey(id, '');
    let removed = 0;
    for await (const key of scenes.keys({ prefix }))
      removed += await removeScene(catalogue, lock, collection, key.slice(prefix.length));
    let derived: TileRecord[] = [];
    for await (const tile of tilesLeft()) {
      derived.push(tile);
      if (derived.length < BATCH_TILES) continue;
      const chunk = derived;
      await lock.commit(async () => ({ removed: chunk }));
      removed += chunk.length;
      derived = [];
    }
    await lock.commit(async () => {
      for await (const key of scenes.keys({ prefix })) throw sceneBusy(id, key.slice(prefix.length));
      const edits: RecordEdit[] = [
        { table: 'collections', key: id, record: null },
        { table: 'clusterings', key: id, record: null },
      ];
      for await (const key of catalogue.textures.keys({ prefix }))
        edits.push({ table: 'textures', key, record: null });
      return { removed: derived, edits };
    });
    return removed + derived.length;
  });
}
