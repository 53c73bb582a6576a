/** The store of one node: files of tiles and models, their records, and the index that searches run on. */
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { messageOf, type TilewrightError } from '../errors.js';
import type { Catalogue, Change } from './catalogue.js';
import { sceneKey } from './catalogue.js';
import { ColumnIndex } from './column-index.js';
import { DataFolder } from './data-folder.js';
import { writeSynced } from './durable.js';
import { collectionFixed, noCollection, onDisk, sceneBusy, storageCorrupt } from './errors.js';
import type { ModelVersion, TileVersion } from './layout.js';
import { modelFile, modelFolder, tileFile, tileFolder } from './layout.js';
import { checkedName, modelId, tileId } from './names.js';
import type { CollectionRecord, ModelRecord, SceneRecord, TileRecord } from './records.js';
import { SceneWrite } from './scene-write.js';
import { Sweeper } from './sweeper.js';
import { publishVersions, removeVersions, stageVersion } from './version-folder.js';

/** How long the files of a replaced version stay for those who have found them in a search, ms. */
const SWEEP_DELAY = 10 * 60_000;
const LOAD_CHUNK = 10_000;

export interface StorageStats {
  collections: number;
  scenes: number;
  tiles: number;
  models: number;
  /** Why replaced files could not be removed at the last try; null where all is well. */
  sweepError: string | null;
}

/**
 * Invariants: the index holds exactly the sound records of the table `tiles`, and changes after the batch that changes
 * them is on disk, so a search never sees what a power cut could take back. Changes that read before they write run one
 * after another (`inTurn`).
 */
export class Storage {
  readonly index = new ColumnIndex();
  /** Tile records that were found damaged at open: TW_STORAGE_CORRUPT, each naming its key. They are not searchable. */
  readonly damaged: TilewrightError[] = [];
  private readonly sweeper: Sweeper;
  private readonly writing = new Set<string>();
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly folder: DataFolder,
    sweepDelay: number,
  ) {
    this.sweeper = new Sweeper(folder, sweepDelay);
  }

  /**
   * Opens a data folder, or makes one; removes what interrupted writes have left behind, and loads the index. Throws
   * what `DataFolder.open` throws.
   */
  static async open(dir: string, { sweepDelay = SWEEP_DELAY } = {}): Promise<Storage> {
    const storage = new Storage(await DataFolder.open(dir), sweepDelay);
    try {
      await storage.sweeper.start();
      await storage.loadIndex();
      return storage;
    } catch (error) {
      await storage.close();
      throw error;
    }
  }

  get dir(): string {
    return this.folder.dir;
  }

  get catalogue(): Catalogue {
    return this.folder.catalogue;
  }

  // Collections

  getCollection(id: string): Promise<CollectionRecord | undefined> {
    return this.catalogue.collections.get(id);
  }

  collections(): AsyncGenerator<CollectionRecord> {
    return this.catalogue.collections.values();
  }

  /**
   * The collection of this id, made durable if it is new. Its grid and precision are fixed from then on: others are
   * refused with TW_STORAGE_COLLECTION_FIXED.
   */
  ensureCollection(wanted: Omit<CollectionRecord, 'createdAt'>): Promise<CollectionRecord> {
    checkedName('collection id', wanted.id);
    checkedName('grid', wanted.grid);
    return this.inTurn(async () => {
      const { collections } = this.catalogue;
      const existing = await collections.get(wanted.id);
      if (existing) return requireSameCells(existing, wanted);
      const record = { ...wanted, createdAt: Date.now() };
      await this.catalogue.write([collections.set(record.id, record)]);
      return record;
    });
  }

  // Scenes

  getScene(collection: string, scene: string): Promise<SceneRecord | undefined> {
    return this.catalogue.scenes.get(sceneKey(collection, scene));
  }

  scenes(collection: string): AsyncGenerator<SceneRecord> {
    return this.catalogue.scenes.values({ prefix: sceneKey(collection, '') });
  }

  /**
   * Begins to write a scene, new or in place of its former version. `geocodes` are all cells that it may touch. Throws
   * TW_STORAGE_SCENE_BUSY while another write of it is under way, TW_STORAGE_NO_COLLECTION. The caller ends the write
   * by `commit` or `abort`.
   */
  async beginScene(collectionId: string, scene: string, geocodes: Iterable<string>): Promise<SceneWrite> {
    const collection = await this.requireCollection(collectionId);
    const key = sceneKey(collectionId, scene);
    if (this.writing.has(key)) throw sceneBusy(collectionId, scene);
    const write = new SceneWrite(this, collection, scene, geocodes, () => this.writing.delete(key));
    this.writing.add(key);
    try {
      await write.begin();
    } catch (error) {
      this.writing.delete(key);
      throw error;
    }
    return write;
  }

  /** Used by `SceneWrite.commit`. */
  replaceScene(
    collection: CollectionRecord,
    scene: SceneRecord,
    tiles: TileRecord[],
    also: Change[],
  ): Promise<void> {
    return this.inTurn(async () => {
      requireSameCells(await this.requireCollection(collection.id), collection);
      const { scenes, tiles: table } = this.catalogue;
      const former = await this.tilesOfScene(collection, scene.id);
      await this.catalogue.write([
        ...this.superseding(former),
        ...tiles.map((tile) => table.set(tile.id, tile)),
        scenes.set(sceneKey(collection.id, scene.id), scene),
        ...also,
      ]);
      this.index.remove(former.map((tile) => tile.id));
      this.index.add(tiles);
      if (former.length > 0) this.sweeper.schedule();
    });
  }

  // Tiles

  getTile(id: string): Promise<TileRecord | undefined> {
    return this.catalogue.tiles.get(id);
  }

  /** Records of these ids in this order; those that are gone meanwhile are left out. */
  async getTiles(ids: string[]): Promise<TileRecord[]> {
    return (await this.catalogue.tiles.getMany(ids)).filter((tile) => tile !== undefined);
  }

  /** Absolute path of the file of one band group. Throws TW_STORAGE_BAD_NAME. */
  tilePath(tile: TileVersion, group: string): string {
    return join(this.dir, tileFile(tile, group));
  }

  // Models

  getModel(id: string): Promise<ModelRecord | undefined> {
    return this.catalogue.models.get(id);
  }

  models(): AsyncGenerator<ModelRecord> {
    return this.catalogue.models.values();
  }

  /** Absolute path of one file of a model. Throws TW_STORAGE_BAD_NAME. */
  modelPath(model: ModelVersion, name: string): string {
    return join(this.dir, modelFile(model, name));
  }

  /**
   * Stores a model's files and its record, in place of its former version. `model.version` is a new one (`newVersion`).
   * Durable and whole when it resolves; absent or the former one if it never does.
   */
  async putModel(
    model: Omit<ModelRecord, 'id' | 'files' | 'createdAt'>,
    files: Record<string, Uint8Array>,
  ): Promise<ModelRecord> {
    const folder = modelFolder(model);
    const record: ModelRecord = {
      ...model,
      id: modelId(model.model, model.collection, model.grid, model.geocode),
      createdAt: Date.now(),
      files: Object.entries(files).map(([name, bytes]) => ({
        name: checkedName('file name', name),
        bytes: bytes.byteLength,
        crc32: crc32(bytes),
      })),
    };
    const { pending } = this.catalogue;
    await this.catalogue.write([pending.set(folder, { since: Date.now() })]);
    try {
      const staging = await stageVersion(this.dir, folder);
      await onDisk(this.dir, async () => {
        for (const [name, bytes] of Object.entries(files)) await writeSynced(join(staging, name), bytes);
      });
      await publishVersions(this.dir, [folder]);
      await this.replaceModel(record, [pending.delete(folder)]);
    } catch (error) {
      // As with scenes: after a failed batch only the next open can tell what the files belong to.
      if (!this.catalogue.failed) {
        await removeVersions(this.dir, [folder]);
        await this.catalogue.write([pending.delete(folder)]);
      }
      throw error;
    }
    return record;
  }

  // The whole

  async stats(): Promise<StorageStats> {
    const { collections, scenes, models } = this.catalogue;
    return {
      collections: await count(collections.keys()),
      scenes: await count(scenes.keys()),
      tiles: this.index.size,
      models: await count(models.keys()),
      sweepError: this.sweeper.failure === undefined ? null : messageOf(this.sweeper.failure),
    };
  }

  /** Removes the files of versions that were replaced longer ago than the delay; else a timer does. */
  sweep(): Promise<void> {
    return this.sweeper.sweep();
  }

  /** Waits for changes under way. Scene writes that are open are undone at the next open. */
  async close(): Promise<void> {
    await this.inTurn(() => this.sweeper.stop());
    await this.folder.close();
  }

  private async requireCollection(id: string): Promise<CollectionRecord> {
    const collection = await this.getCollection(id);
    if (!collection) throw noCollection(id);
    return collection;
  }

  private replaceModel(record: ModelRecord, also: Change[]): Promise<void> {
    return this.inTurn(async () => {
      const { models, superseded } = this.catalogue;
      const former = await models.get(record.id);
      const replaced = former ? [superseded.set(modelFolder(former), { since: Date.now() })] : [];
      await this.catalogue.write([models.set(record.id, record), ...replaced, ...also]);
      if (former) this.sweeper.schedule();
    });
  }

  /**
   * The tiles that the scene's record names. Their records are not read, so that a scene with a damaged tile can be
   * replaced; where its own record is damaged, they are the sound raw tiles that say they are of it.
   */
  private async tilesOfScene(collection: CollectionRecord, sceneId: string): Promise<TileVersion[]> {
    const { id, grid } = collection;
    try {
      const scene = await this.getScene(id, sceneId);
      const { geocodes, version } = scene ?? { geocodes: [], version: '' };
      return geocodes.map((geocode) => ({ id: tileId(id, sceneId, grid, geocode), grid, geocode, version }));
    } catch (error) {
      if (!storageCorrupt.is(error)) throw error;
    }
    const tiles: TileVersion[] = [];
    for await (const { record } of this.catalogue.tiles.scan({ prefix: `${id}_${sceneId}_` }))
      if (record?.collection === id && record.scene === sceneId && record.source === 'raw')
        tiles.push(record);
    return tiles;
  }

  /** Takes these tiles out of the catalogue and leaves their files to the sweeper. */
  private superseding(tiles: TileVersion[]): Change[] {
    const { tiles: table, superseded } = this.catalogue;
    const since = Date.now();
    return tiles.flatMap((tile) => [table.delete(tile.id), superseded.set(tileFolder(tile), { since })]);
  }

  private async loadIndex(): Promise<void> {
    this.index.load([]);
    let chunk: TileRecord[] = [];
    for await (const { record, error } of this.catalogue.tiles.scan()) {
      if (error) this.damaged.push(error);
      else chunk.push(record);
      if (chunk.length === LOAD_CHUNK) {
        this.index.add(chunk);
        chunk = [];
      }
    }
    this.index.add(chunk);
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.turn.then(work);
    this.turn = result.catch(() => undefined);
    return result;
  }
}

function requireSameCells(
  fixed: CollectionRecord,
  wanted: Pick<CollectionRecord, 'grid' | 'precision'>,
): CollectionRecord {
  const name = ({ grid, precision }: typeof wanted) => `${grid} cells of precision ${precision}`;
  if (name(fixed) !== name(wanted)) throw collectionFixed(fixed.id, name(fixed), name(wanted));
  return fixed;
}

async function count(items: AsyncIterable<unknown>): Promise<number> {
  let n = 0;
  for await (const _ of items) n++;
  return n;
}
