/** Replacing and deleting scenes, tiles and collections, each in whole commits. */
import { sceneKey } from './catalogue.js';
import type { Commits } from './commits.js';
import { collectionFixed, noCollection, noScene, noTile, storageCorrupt } from './errors.js';
import type { TileVersion } from './layout.js';
import { tileId } from './names.js';
import type { CollectionRecord, TileRecord } from './records.js';

const CHUNK = 1000;

async function requireCollection(commits: Commits, id: string): Promise<CollectionRecord> {
  const collection = await commits.catalogue.collections.get(id);
  if (!collection) throw noCollection(id);
  return collection;
}

/** `fixed`, where it has the grid and the precision that are wanted. Throws TW_STORAGE_COLLECTION_FIXED. */
export function requireSameCells(
  fixed: CollectionRecord,
  wanted: Pick<CollectionRecord, 'grid' | 'precision'>,
): CollectionRecord {
  const name = ({ grid, precision }: typeof wanted) => `${grid} cells of precision ${precision}`;
  if (name(fixed) !== name(wanted)) throw collectionFixed(fixed.id, name(fixed), name(wanted));
  return fixed;
}

/** Throws TW_STORAGE_NO_COLLECTION, TW_STORAGE_COLLECTION_FIXED. */
export function amendCollection(
  commits: Commits,
  id: string,
  amend: (record: CollectionRecord) => CollectionRecord,
): Promise<CollectionRecord> {
  return commits.inTurn(async () => {
    const record = await requireCollection(commits, id);
    const amended = amend(record);
    requireSameCells(record, amended);
    if (JSON.stringify(amended) !== JSON.stringify(record))
      await commits.apply({ edits: [{ table: 'collections', key: id, record: amended }] });
    return amended;
  });
}

/**
 * The raw tiles of a scene as its record names them. Their own records are not read, so that a scene with a damaged tile
 * can be replaced; where the scene's record is damaged, they are the sound tiles that say they are of it.
 */
export async function tilesOfScene(
  { catalogue }: Commits,
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
export function deleteScene(commits: Commits, collectionId: string, sceneId: string): Promise<number> {
  return commits.inTurn(async () => {
    const collection = await requireCollection(commits, collectionId);
    if (!(await commits.catalogue.scenes.has(sceneKey(collectionId, sceneId))))
      throw noScene(collectionId, sceneId);
    return removeScene(commits, collection, sceneId);
  });
}

async function removeScene(commits: Commits, collection: CollectionRecord, sceneId: string): Promise<number> {
  const tiles = await tilesOfScene(commits, collection, sceneId);
  const key = sceneKey(collection.id, sceneId);
  await commits.apply({ removed: tiles, edits: [{ table: 'scenes', key, record: null }] });
  return tiles.length;
}

/**
 * A raw tile leaves its scene's record in the same batch, and the last one takes it along. The scene loses its
 * fingerprint, so that the same delivery brings the tile back. Throws TW_STORAGE_NO_TILE.
 */
export function deleteTile(commits: Commits, id: string): Promise<void> {
  return commits.inTurn(async () => {
    const { tiles, scenes } = commits.catalogue;
    const tile = await tiles.get(id);
    if (!tile) throw noTile(id);
    const key = sceneKey(tile.collection, tile.scene);
    const scene = tile.source === 'raw' ? await scenes.get(key) : undefined;
    const geocodes = scene?.geocodes.filter((geocode) => geocode !== tile.geocode) ?? [];
    const record = geocodes.length > 0 && scene ? { ...scene, fingerprint: '', geocodes } : null;
    await commits.apply({ removed: [tile], edits: scene ? [{ table: 'scenes', key, record }] : [] });
  });
}

/**
 * Scene by scene, then the derived tiles, then the collection itself: if it is cut off, what is left is sound and can be
 * deleted again. Models stay. The number of tiles that went. Throws TW_STORAGE_NO_COLLECTION.
 */
export function deleteCollection(commits: Commits, id: string): Promise<number> {
  return commits.inTurn(async () => {
    const { scenes, tiles } = commits.catalogue;
    const collection = await requireCollection(commits, id);
    const prefix = sceneKey(id, '');
    let removed = 0;
    for await (const key of scenes.keys({ prefix }))
      removed += await removeScene(commits, collection, key.slice(prefix.length));
    let derived: TileRecord[] = [];
    for await (const { record } of tiles.scan({ prefix: `${id}_` })) {
      if (record?.collection === id) derived.push(record);
      if (derived.length < CHUNK) continue;
      await commits.apply({ removed: derived });
      removed += derived.length;
      derived = [];
    }
    await commits.apply({ removed: derived, edits: [{ table: 'collections', key: id, record: null }] });
    return removed + derived.length;
  });
}
