/** Replacing and deleting scenes, tiles and collections, each in whole commits. */
import { type Catalogue, sceneKey } from '../catalogue/catalogue.js';
import type { Commit, RecordEdit } from '../catalogue/commit.js';
import type { CollectionRecord, TileRecord } from '../catalogue/records.js';
import {
  collectionFixed,
  collectionNotFound,
  sceneBusy,
  sceneNotFound,
  storageCorrupt,
  tileNotFound,
} from '../errors.js';
import { tileId } from '../files/names.js';
import type { TileVersion } from '../files/paths.js';
import { textureDeletions } from './texture-write.js';
import type { LockManager, WriteLock } from './write-lock.js';

const BATCH_TILES = 1000;

async function requireCollection({ collections }: Catalogue, id: string): Promise<CollectionRecord> {
  const collection = await collections.get(id);
  if (!collection) throw collectionNotFound(id);
  return collection;
}

/** Does some work under a claim. */
async function withLock<T>(claim: Promise<WriteLock>, work: (claim: WriteLock) => Promise<T>): Promise<T> {
  const held = await claim;
  try {
    return await work(held);
  } finally {
    await held.release();
  }
}

/** What a grid and a precision make. */
interface Cells {
  grid: string;
  precision: number;
}

/** `fixed`, where it has the grid and the precision that are wanted. Throws TW_STORAGE_COLLECTION_FIXED. */
export function requireSameCells<T extends Cells & { id: string }>(fixed: T, wanted: Cells): T {
  const name = ({ grid, precision }: Cells) => `${grid} cells of precision ${precision}`;
  if (name(fixed) !== name(wanted)) throw collectionFixed(fixed.id, name(fixed), name(wanted));
  return fixed;
}

/** Throws TW_STORAGE_NO_COLLECTION, TW_STORAGE_COLLECTION_FIXED. */
export function updateCollection(
  claims: LockManager,
  id: string,
  amend: (record: CollectionRecord) => CollectionRecord,
): Promise<CollectionRecord> {
  return withLock(claims.lockShared(), async (claim) => {
    let amended: CollectionRecord | undefined;
    await claim.commit(async () => {
      const record = await requireCollection(claims.catalogue, id);
      amended = amend(record);
      requireSameCells(record, amended);
      const isSame = JSON.stringify(amended) === JSON.stringify(record);
      return isSame ? {} : { edits: [{ table: 'collections', key: id, record: amended }] };
    });
    return amended!;
  });
}

/**
 * The raw tiles of a scene as its record names them. Their own records are not read, so that a scene with a damaged tile
 * can be replaced; where the scene's record is damaged, they are the sound tiles that say they are of it.
 */
export async function tilesOfScene(
  catalogue: Catalogue,
  { id, grid }: CollectionRecord,
  sceneId: string,
): Promise<TileVersion[]> {
  try {
    const scene = await catalogue.scenes.get(sceneKey(id, sceneId));
    if (!scene) return [];
    const { geocodes, version } = scene;
    return geocodes.map((geocode) => ({ id: tileId(id, sceneId, grid, geocode), grid, geocode, version }));
  } catch (error) {
    if (!storageCorrupt.is(error)) throw error;
  }
  const tiles: TileVersion[] = [];
  for await (const { record } of catalogue.tiles.scan({ prefix: `${id}_${sceneId}_` }))
    if (record?.collection === id && record.scene === sceneId && record.source === 'raw') tiles.push(record);
  return tiles;
}

/** The number of tiles that went. Tiles made from those of the scene stay. Throws TW_STORAGE_NO_COLLECTION, TW_STORAGE_NO_SCENE. */
export function deleteScene(claims: LockManager, collectionId: string, sceneId: string): Promise<number> {
  const { catalogue } = claims;
  return withLock(claims.lockScene(collectionId, sceneId), async (claim) => {
    const collection = await requireCollection(catalogue, collectionId);
    if (!(await catalogue.scenes.has(sceneKey(collectionId, sceneId))))
      throw sceneNotFound(collectionId, sceneId);
    return removeScene(catalogue, claim, collection, sceneId);
  });
}

async function removeScene(
  catalogue: Catalogue,
  claim: WriteLock,
  collection: CollectionRecord,
  sceneId: string,
): Promise<number> {
  const key = sceneKey(collection.id, sceneId);
  let removed: TileVersion[] = [];
  await claim.commit(async () => {
    removed = await tilesOfScene(catalogue, collection, sceneId);
    const looks = await textureDeletions(catalogue, collection.id, removed);
    return { removed, edits: [{ table: 'scenes', key, record: null }, ...looks] };
  });
  return removed.length;
}

/** Gets a tile's record, also one that another node has. */
export type GetTile = (id: string) => Promise<TileRecord | undefined>;

/**
 * A raw tile leaves its scene's record in the same batch, and the last one takes it along. The scene loses its
 * fingerprint, so that the same delivery brings the tile back. Throws TW_STORAGE_NO_TILE.
 */
export async function deleteTile(claims: LockManager, id: string, get: GetTile): Promise<void> {
  const { scenes } = claims.catalogue;
  const tile = await get(id);
  if (!tile) throw tileNotFound(id);
  const { collection, scene } = tile;
  const claim = tile.source === 'raw' ? claims.lockScene(collection, scene) : claims.lockShared();
  await withLock(claim, (held) =>
    held.commit(async (): Promise<Commit> => {
      const current = await get(id);
      if (!current) throw tileNotFound(id);
      const key = sceneKey(collection, scene);
      const record = tile.source === 'raw' ? await scenes.get(key) : undefined;
      const looks = await textureDeletions(claims.catalogue, collection, [current]);
      if (!record) return { removed: [current], edits: looks };
      const geocodes = record.geocodes.filter((geocode) => geocode !== current.geocode);
      const left = geocodes.length > 0 ? { ...record, fingerprint: '', geocodes } : null;
      return { removed: [current], edits: [{ table: 'scenes', key, record: left }, ...looks] };
    }),
  );
}

/** The tiles of a collection that are here, in whatever state. */
export async function* tilesOfCollection({ tiles }: Catalogue, id: string): AsyncGenerator<TileRecord> {
  for await (const { record } of tiles.scan({ prefix: `${id}_` }))
    if (record?.collection === id) yield record;
}

/**
 * Scene by scene, then the derived tiles, which are those that `tilesLeft` gives then, then the collection itself: if it is
 * cut off, what is left is sound and can be deleted again. Models stay. The number of tiles that went. Throws
 * TW_STORAGE_NO_COLLECTION, TW_STORAGE_SCENE_BUSY.
 */
export function deleteCollection(
  claims: LockManager,
  id: string,
  tilesLeft: () => AsyncIterable<TileRecord>,
): Promise<number> {
  const { catalogue } = claims;
  return withLock(claims.lockCollection(id), async (claim) => {
    const { scenes } = catalogue;
    const collection = await requireCollection(catalogue, id);
    const prefix = sceneKey(id, '');
    let removed = 0;
    for await (const key of scenes.keys({ prefix }))
      removed += await removeScene(catalogue, claim, collection, key.slice(prefix.length));
    let derived: TileRecord[] = [];
    for await (const tile of tilesLeft()) {
      derived.push(tile);
      if (derived.length < BATCH_TILES) continue;
      const chunk = derived;
      await claim.commit(async () => ({ removed: chunk }));
      removed += chunk.length;
      derived = [];
    }
    await claim.commit(async () => {
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
