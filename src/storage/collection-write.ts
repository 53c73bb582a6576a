/** Changes of collections, scenes and tiles that exist: deletions, and new records of collections. */
import { type Catalogue, sceneKey } from './catalogue.js';
import type { Commit, RecordEdit } from './commit.js';
import { collectionFixed, collectionNotFound, sceneBusy, sceneNotFound, tileNotFound } from './errors.js';
import { type TileVersion, tileId } from './file-names.js';
import { type CollectionRecord, type TileRecord, tileVersions, withoutTile } from './records.js';
import { textureDeletions } from './textures.js';
import { type LockManager, type WriteLock, withLock } from './write-lock.js';

const BATCH_TILES = 1000;

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

/** Returns the record of a tile, even if another node has it. */
type GetTile = (id: string) => Promise<TileRecord | undefined>;

/**
 * Changes of collections, scenes and tiles that exist. Deletions throw TW_STORAGE_SCENE_BUSY and TW_STORAGE_COLLECTION_BUSY while the scene
 * or its collection is being changed, so their result does not depend on timing.
 */
export class CollectionStore {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly locks: () => LockManager,
  ) {}

  /**
   * Replaces the record of an existing collection by the result of `amend`, which keeps grid and precision. Durable when it resolves.
   * Throws TW_STORAGE_NO_COLLECTION, TW_STORAGE_COLLECTION_FIXED.
   */
  update(id: string, amend: (record: CollectionRecord) => CollectionRecord): Promise<CollectionRecord> {
    return withLock(this.locks().lockShared(), async (lock) => {
      let amended: CollectionRecord | undefined;
      await lock.commit(async () => {
        const record = await this.require(id);
        amended = amend(record);
        requireSameCells(record, amended);
        const isSame = JSON.stringify(amended) === JSON.stringify(record);
        return isSame ? {} : { edits: [{ table: 'collections', key: id, record: amended }] };
      });
      return amended!;
    });
  }

  /**
   * Deletes a collection; models stay. Deletes scene by scene, then the derived tiles, which `tilesLeft` returns even if other nodes have
   * some of them, then the collection: after an interruption, the rest is consistent and can be deleted again. Returns the number of
   * deleted tiles. Throws TW_STORAGE_NO_COLLECTION.
   */
  delete(id: string, tilesLeft: () => AsyncIterable<TileRecord> = () => this.tilesOf(id)): Promise<number> {
    return withLock(this.locks().lockCollection(id), async (lock) => {
      const { scenes, textures } = this.catalogue;
      const collection = await this.require(id);
      const prefix = sceneKey(id, '');
      let removed = 0;
      for await (const key of scenes.keys({ prefix }))
        removed += await this.removeScene(lock, collection, key.slice(prefix.length));
      let derived: TileRecord[] = [];
      for await (const tile of tilesLeft()) {
        derived.push(tile);
        if (derived.length < BATCH_TILES) continue;
        const chunk = derived;
        await lock.commit(async () => ({ removed: chunk }));
        removed += chunk.length;
        derived = [];
      }
      let deletions: RecordEdit[] = [];
      for await (const key of textures.keys({ prefix })) {
        deletions.push({ table: 'textures', key, record: null });
        if (deletions.length < BATCH_TILES) continue;
        const edits = deletions;
        await lock.commit(async () => ({ edits }));
        deletions = [];
      }
      await lock.commit(async () => {
        for await (const key of scenes.keys({ prefix })) throw sceneBusy(id, key.slice(prefix.length));
        const edits: RecordEdit[] = [
          { table: 'collections', key: id, record: null },
          { table: 'clusterings', key: id, record: null },
        ];
        // Also those that were made in the meantime.
        for await (const key of textures.keys({ prefix }))
          edits.push({ table: 'textures', key, record: null });
        return { removed: derived, edits };
      });
      return removed + derived.length;
    });
  }

  /**
   * Deletes a scene and returns the number of deleted tiles; those derived from them stay. Throws TW_STORAGE_NO_COLLECTION,
   * TW_STORAGE_NO_SCENE.
   */
  deleteScene(collectionId: string, sceneId: string): Promise<number> {
    return withLock(this.locks().lockScene(collectionId, sceneId), async (lock) => {
      const collection = await this.require(collectionId);
      if (!(await this.catalogue.scenes.has(sceneKey(collectionId, sceneId))))
        throw sceneNotFound(collectionId, sceneId);
      return this.removeScene(lock, collection, sceneId);
    });
  }

  /**
   * Deletes a tile. `get` returns its record, which another node may have. The same batch removes a raw tile from its scene's record, and
   * deletes that record with the last tile, see `withoutTile`. Throws TW_STORAGE_NO_TILE.
   */
  async deleteTile(id: string, get: GetTile = (tile) => this.catalogue.tiles.get(tile)): Promise<void> {
    const tile = await get(id);
    if (!tile) throw tileNotFound(id);
    const { collection, scene } = tile;
    const isRaw = tile.source === 'raw';
    const lock = isRaw ? this.locks().lockScene(collection, scene) : this.locks().lockShared();
    await withLock(lock, (held) =>
      held.commit(async (): Promise<Commit> => {
        const current = await get(id);
        if (!current) throw tileNotFound(id);
        const key = sceneKey(collection, scene);
        const record = isRaw ? await this.catalogue.scenes.get(key) : undefined;
        const textures = await textureDeletions(this.catalogue, collection, [current]);
        if (!record) return { removed: [current], edits: textures };
        const left = withoutTile(record, current.geocode);
        return { removed: [current], edits: [{ table: 'scenes', key, record: left }, ...textures] };
      }),
    );
  }

  private async removeScene(lock: WriteLock, collection: CollectionRecord, sceneId: string): Promise<number> {
    const key = sceneKey(collection.id, sceneId);
    let removed: TileVersion[] = [];
    await lock.commit(async () => {
      removed = await tilesOfScene(this.catalogue, collection, sceneId);
      const textures = await textureDeletions(this.catalogue, collection.id, removed);
      return { removed, edits: [{ table: 'scenes', key, record: null }, ...textures] };
    });
    return removed.length;
  }

  private async require(id: string): Promise<CollectionRecord> {
    const collection = await this.catalogue.collections.get(id);
    if (!collection) throw collectionNotFound(id);
    return collection;
  }

  /** The tiles of a collection that have intact records on this node. */
  private async *tilesOf(id: string): AsyncGenerator<TileRecord> {
    for await (const { record } of this.catalogue.tiles.scan({ prefix: `${id}_` }))
      if (record?.collection === id) yield record;
  }
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
    return [...tileVersions(scene.record)].map(([geocode, version]) => ({
      ...{ grid, geocode, version },
      id: tileId(id, sceneId, grid, geocode),
    }));
  }
  const tiles: TileVersion[] = [];
  for await (const { record } of catalogue.tiles.scan({ prefix: `${id}_${sceneId}_` }))
    if (record?.collection === id && record.scene === sceneId && record.source === 'raw') tiles.push(record);
  return tiles;
}
