/** The store of one node: files of tiles and models, their records, and the index that searches run on. */
import { join } from 'node:path';
import { messageOf, type TilewrightError } from '../errors.js';
import type { CacheStats } from './cache/file-cache.js';
import { TileCache } from './cache/tile-cache.js';
import { type Catalogue, type ScanResult, sceneKey } from './catalogue/catalogue.js';
import type { Commit } from './catalogue/commit.js';
import { CommitApplier } from './catalogue/commit-applier.js';
import type {
  ClusteringRecord,
  CollectionRecord,
  GroupRecord,
  ModelRecord,
  ModelVersionRecord,
  ReplicaRecord,
  SceneRecord,
  TextureRecord,
  TileRecord,
} from './catalogue/records.js';
import type { ColumnIndex } from './column-index/column-index.js';
import { type IndexLoad, PersistentIndex } from './column-index/persist/persistent-index.js';
import { modelDamaged } from './errors.js';
import { DataFolder } from './files/data-folder.js';
import { DiskReserve } from './files/disk-reserve.js';
import { type ModelFileLocation, readModelFile } from './files/model-files.js';
import { checkedName, tileId } from './files/names.js';
import { type ModelVersion, modelFile, type TileVersion, tileFile, tileFolder } from './files/paths.js';
import { createResultsFolder, expireResults, resultFile } from './files/results.js';
import {
  cleanScratchAtOpen,
  expireScratch,
  makeJobScratch,
  makePersistentScratch,
  makeScratch,
  removeScratch,
  syncScratch,
} from './files/scratch.js';
import { VersionGc } from './files/version-gc.js';
import type { ObjectStore } from './object-store/object-store.js';
import { isSceneInStore, isSceneIntact } from './verify/scene-integrity.js';
import {
  deleteCollection,
  deleteScene,
  deleteTile,
  type GetTile,
  requireSameCells,
  tilesOfCollection,
  updateCollection,
} from './write/delete-scenes.js';
import { DerivedWrite } from './write/derived-write.js';
import { deleteModel, type NewModel, writeModel } from './write/model-write.js';
import { SceneWrite } from './write/scene-write.js';
import { textureKey, writeClustering, writeTextures } from './write/texture-write.js';
import { type CountedLockManager, LocalLockManager, type LockManager } from './write/write-lock.js';

/** How long the files of a replaced version stay for those who have found them in a search, ms. */
const VERSION_GC_DELAY_MS = 10 * 60_000;

/** A collection as its first scene wants it. */
export type NewCollection = Omit<CollectionRecord, 'createdAt'>;

export interface StorageStats {
  collections: number;
  scenes: number;
  tiles: number;
  models: number;
  /** Why replaced files could not be removed at the last try; null where all is well. */
  sweepError: string | null;
  /** Why the snapshot of the index could not be written at the last try; null where all is well. */
  snapshotError: string | null;
  /** Why no writes are accepted until the next open; null where they are. */
  writeError: string | null;
}

export interface StorageOptions {
  /** How long the files of a replaced version stay, ms. */
  sweepDelay?: number;
  /** Bytes of the disk that writes leave free; 0 for none. By default 2 % of the disk, 2 GB at most. */
  reserve?: number;
  /** A snapshot of the index is written when so many tiles have changed since the last one, and at the end. */
  snapshotAfter?: number;
  /** Bytes that files of tiles may take which are in a shared store as well; all but the reserve by default. */
  cache?: number;
}

/** One open data folder. All changes go through `Commits`, which holds the invariants. */
export class Storage {
  /** To be asked before much is written. Scene writes ask it themselves. */
  readonly reserve: DiskReserve;
  private readonly persistentIndex: PersistentIndex;
  private readonly versionGc: VersionGc;
  private readonly commitApplier: CommitApplier;
  private locks: LockManager;
  private tileCache: TileCache | undefined;

  private constructor(
    readonly folder: DataFolder,
    private readonly options: StorageOptions,
  ) {
    const { sweepDelay = VERSION_GC_DELAY_MS, reserve, snapshotAfter } = options;
    this.reserve = new DiskReserve(folder.dir, reserve);
    this.versionGc = new VersionGc(folder, sweepDelay, (folders) => this.tileCache?.cache.forget(folders));
    this.persistentIndex = new PersistentIndex(folder.dir, folder.catalogue, this.reserve, snapshotAfter);
    this.commitApplier = new CommitApplier(
      folder.catalogue,
      this.persistentIndex,
      this.versionGc,
      (folders) => this.tileCache?.cache.markEvictFirst(folders),
    );
    this.locks = new LocalLockManager(this.commitApplier);
  }

  /**
   * Opens a data folder, or makes one; removes what interrupted writes have left behind, and loads the index. Throws
   * what `DataFolder.open` throws.
   */
  static async open(dir: string, options: StorageOptions = {}): Promise<Storage> {
    const storage = new Storage(await DataFolder.open(dir), options);
    try {
      await cleanScratchAtOpen(dir, storage.catalogue);
      await storage.versionGc.start();
      await storage.persistentIndex.open();
      storage.index.startAt((await storage.replica())?.applied ?? 0);
      return storage;
    } catch (error) {
      await storage.close();
      throw error;
    }
  }

  get dir(): string {
    return this.folder.dir;
  }

  get index(): ColumnIndex {
    return this.persistentIndex.index;
  }

  /** How the index was loaded at open. */
  get indexLoad(): IndexLoad {
    return this.persistentIndex.load;
  }

  /** Tile records that were found damaged so far: TW_STORAGE_CORRUPT, each naming its key. They are not searchable. */
  get damaged(): TilewrightError[] {
    return [...this.persistentIndex.damaged.values()];
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
   * The collection of this id, or, where there is none yet, the record that the first scene of it will commit. Its grid
   * and precision are fixed from that commit on: others are refused with TW_STORAGE_COLLECTION_FIXED.
   */
  async collectionFor(wanted: NewCollection): Promise<CollectionRecord> {
    checkedName('collection id', wanted.id);
    checkedName('grid', wanted.grid);
    const existing = await this.getCollection(wanted.id);
    return existing ? requireSameCells(existing, wanted) : { ...wanted, createdAt: Date.now() };
  }

  /**
   * The record of a collection that is there with what `amend` makes of it, durable when it resolves. The cells stay as they are.
   * Throws TW_STORAGE_NO_COLLECTION.
   */
  updateCollection(
    id: string,
    amend: (record: CollectionRecord) => CollectionRecord,
  ): Promise<CollectionRecord> {
    return updateCollection(this.locks, id, amend);
  }

  /**
   * With its scenes and all its tiles; models stay. `tilesLeft` gives those that no scene names, where others have some of
   * them. The number of tiles that went. Throws TW_STORAGE_NO_COLLECTION, and TW_STORAGE_SCENE_BUSY while a scene of it is being
   * written.
   */
  deleteCollection(
    id: string,
    tilesLeft: () => AsyncIterable<TileRecord> = () => tilesOfCollection(this.catalogue, id),
  ): Promise<number> {
    return deleteCollection(this.locks, id, tilesLeft);
  }

  // Scenes

  getScene(collection: string, scene: string): Promise<SceneRecord | undefined> {
    return this.catalogue.scenes.get(sceneKey(collection, scene));
  }

  scenes(collection: string): AsyncGenerator<SceneRecord> {
    return this.catalogue.scenes.values({ prefix: sceneKey(collection, '') });
  }

  /** Like `scenes`, with their ids, but goes on after a damaged record; at most `limit`, and only those after the id `after`. */
  async *scanScenes(
    collection: string,
    after?: string,
    limit?: number,
  ): AsyncGenerator<ScanResult<SceneRecord> & { id: string }> {
    const prefix = sceneKey(collection, '');
    const range = { prefix, limit, after: after === undefined ? undefined : prefix + after };
    for await (const scanned of this.catalogue.scenes.scan(range))
      yield { ...scanned, id: scanned.key.slice(prefix.length) };
  }

  /**
   * Begins to write a scene, new or in place of its former version. `geocodes` are all cells that it may touch. Throws
   * TW_STORAGE_SCENE_BUSY while another write of it is under way, TW_STORAGE_COLLECTION_FIXED. The caller ends the write
   * by `commit` or `abort`.
   */
  async beginScene(wanted: NewCollection, scene: string, geocodes: Iterable<string>): Promise<SceneWrite> {
    const collection = await this.collectionFor(wanted);
    const { dir, catalogue, reserve } = this;
    const claim = await this.locks.lockScene(collection.id, scene);
    try {
      const write = new SceneWrite(dir, catalogue, claim, reserve, collection, scene, geocodes);
      await write.begin();
      return write;
    } catch (error) {
      await claim.release();
      throw error;
    }
  }

  /**
   * Whether all of a scene's tiles are there, byte by byte. Reads them all. Of files in a shared store only the sizes are compared, and of this
   * node's own tiles alone.
   */
  isSceneIntact({ grid }: CollectionRecord, scene: SceneRecord): Promise<boolean> {
    const idOf = (geocode: string) => tileId(scene.collection, scene.id, grid, geocode);
    const { dir, catalogue, tileCache } = this;
    return tileCache
      ? isSceneInStore(tileCache.objects, catalogue, scene, idOf)
      : isSceneIntact(dir, catalogue, scene, idOf);
  }

  /**
   * The number of tiles that went; those made from them stay. Throws TW_STORAGE_NO_COLLECTION, TW_STORAGE_NO_SCENE, and
   * TW_STORAGE_SCENE_BUSY while the scene is being written, so that what is left does not hang on which comes first.
   */
  deleteScene(collection: string, scene: string): Promise<number> {
    return deleteScene(this.locks, collection, scene);
  }

  // Tiles

  getTile(id: string): Promise<TileRecord | undefined> {
    return this.catalogue.tiles.get(id);
  }

  /**
   * Records of these ids in this order; those that are gone meanwhile or `damaged` are left out. With `seq` they are as of that commit
   * of the cluster, as of which the index has given the ids; throws TW_STORAGE_TOO_OLD.
   */
  async getTiles(ids: string[], seq = Infinity): Promise<TileRecord[]> {
    const found: TileRecord[] = [];
    const tiles = await this.catalogue.tiles.scanMany(ids);
    // In one turn, so that what was read and what has changed since are of one moment.
    const former = ids.map((id) => this.commitApplier.undoRecords.get(id, seq));
    for (const [i, scanned] of tiles.entries()) {
      const record = former[i] ?? scanned?.record;
      if (record) found.push(record);
      else if (scanned?.error) await this.exclude(scanned.key);
    }
    return found;
  }

  /** Takes a tile out of the index if its record is still damaged. */
  private exclude(id: string): Promise<void> {
    return this.commitApplier.serialize(async () => {
      const [scanned] = await this.catalogue.tiles.scanMany([id]);
      if (scanned?.error) this.persistentIndex.exclude(id, scanned.error);
    });
  }

  /** Whether the index says of a tile what the catalogue says, at a moment at which nothing is half committed. */
  isIndexConsistent(id: string): Promise<boolean> {
    return this.commitApplier.serialize(async () => {
      const [scanned] = await this.catalogue.tiles.scanMany([id]);
      return scanned?.record
        ? this.index.agrees(scanned.record)
        : scanned !== undefined || !this.index.has(id);
    });
  }

  /** Absolute path of the file of one band group. Throws TW_STORAGE_BAD_NAME. */
  tilePath(tile: TileVersion, group: string): string {
    return join(this.dir, tileFile(tile, group));
  }

  /**
   * `get` gives its record, where another may have it. Throws TW_STORAGE_NO_TILE, and TW_STORAGE_SCENE_BUSY while the
   * tile's scene is being written.
   */
  deleteTile(id: string, get: GetTile = (tile) => this.getTile(tile)): Promise<void> {
    return deleteTile(this.locks, id, get);
  }

  /** Begins to write tiles made from others. The caller ends it by `close`. */
  async beginDerived(): Promise<DerivedWrite> {
    return new DerivedWrite(this.dir, this.catalogue, await this.locks.lockShared(), this.reserve);
  }

  // Models

  getModel(id: string): Promise<ModelRecord | undefined> {
    return this.catalogue.models.get(id);
  }

  /** Like `getModel`, with the error of a damaged record in its place. */
  async scanModel(id: string): Promise<ScanResult<ModelRecord> | undefined> {
    const [scanned] = await this.catalogue.models.scanMany([id]);
    return scanned;
  }

  /** All of them; goes on after a damaged record. */
  scanModels(): AsyncGenerator<ScanResult<ModelRecord>> {
    return this.catalogue.models.scan();
  }

  /** Absolute path of one file of a model. Throws TW_STORAGE_BAD_NAME. */
  modelPath(model: ModelVersion, name: string): string {
    return join(this.dir, modelFile(model, name));
  }

  /**
   * Stores the files of a version of a model, which becomes its latest; `keptVersions` says which others stay. `model.version`
   * is a new one (`newVersion`). Durable and whole when it resolves; absent if it never does.
   */
  putModel(model: NewModel, files: Record<string, Uint8Array>): Promise<ModelRecord> {
    return writeModel(this.dir, this.locks, model, files);
  }

  /**
   * All versions of a model, or the one that is named: of what is left, the newest is the latest then. The number of versions that
   * went, 0 where the record of the model is damaged. Throws TW_STORAGE_NO_MODEL, TW_STORAGE_NO_MODEL_VERSION.
   */
  deleteModel(id: string, version?: string): Promise<number> {
    return deleteModel(this.locks, id, version);
  }

  // What places look like

  // A damaged record of these counts as none, since it can be computed again; `verify` names it.

  /** Of a collection, by their geocodes; all at the same state of it are the same on every node. */
  async *textures(collection: string): AsyncGenerator<TextureRecord> {
    for await (const { record } of this.catalogue.textures.scan({ prefix: `${collection}/` }))
      if (record) yield record;
  }

  async getTextures(
    places: Pick<TextureRecord, 'collection' | 'geocode'>[],
  ): Promise<(TextureRecord | undefined)[]> {
    const scanned = await this.catalogue.textures.scanMany(places.map(textureKey));
    return scanned.map((one) => one?.record);
  }

  /** How often textures of a collection, or clusters of them, have changed since the folder was opened. */
  textureChanges(collection: string): number {
    return this.commitApplier.textureChanges.get(collection) ?? 0;
  }

  async getClustering(collection: string): Promise<ClusteringRecord | undefined> {
    const [scanned] = await this.catalogue.clusterings.scanMany([collection]);
    return scanned?.record;
  }

  /** Replaces the textures of these places, all or none of each collection. Durable when it resolves. */
  putTextures(textures: TextureRecord[]): Promise<void> {
    return writeTextures(this.locks, textures);
  }

  /** In place of that which the collection had. Durable when it resolves. */
  putClustering(clustering: ClusteringRecord): Promise<void> {
    return writeClustering(this.locks, clustering);
  }

  // As part of a cluster

  /**
   * Lets others decide what is changed here, and takes from `objects` what was made on other nodes. From now on the files of tiles
   * are a cache; those of this node's tiles are fetched in the background. `onFailure` is told what goes wrong with that.
   */
  enterCluster(
    claims: CountedLockManager,
    objects: ObjectStore,
    onFailure: (error: unknown) => void = () => {},
  ): void {
    this.locks = claims;
    const isWriting = () => claims.heldCount > 0;
    this.tileCache = new TileCache(this, objects, this.options.cache, isWriting, onFailure);
  }

  /**
   * Sees to it that files of a tile are where `tilePath` says, where they stay for ten seconds at least. Throws the TW_STORE_
   * errors, of which TW_STORE_LOST is of a file that is nowhere any more.
   */
  async ensureFiles(tile: TileVersion, groups: GroupRecord[]): Promise<void> {
    (await this.pinFiles(tile, groups))();
  }

  /** The same for who reads for longer: they stay until the function is called that it resolves to. */
  async pinFiles(tile: TileVersion, groups: GroupRecord[]): Promise<() => void> {
    return (await this.tileCache?.fetcher.fetchAndPin(tile, groups)) ?? (() => {});
  }

  /**
   * Sees to it that a file of a model is where `modelPath` says; whoever reads it there compares it with what is said of it. Throws the
   * same, and TW_STORAGE_MODEL_DAMAGED where the model has no such file.
   */
  async ensureModelFile(model: ModelVersionRecord, name: string): Promise<ModelFileLocation> {
    const { id, version } = model;
    const file = model.files.find((one) => one.name === name);
    if (!file) throw modelDamaged(id, version, name, 'its record names no such file');
    await this.tileCache?.fetcher.ensureModelFile(model, file);
    return { path: this.modelPath(model, name), file, model: { id, version } };
  }

  /** A file of a model as it was written. Throws the same. */
  async readModelFile(model: ModelVersionRecord, name: string): Promise<Buffer> {
    return readModelFile(await this.ensureModelFile(model, name));
  }

  /** Folders of tiles that are committed, and in the shared store: they may go when room is needed. */
  async addToCache(folders: string[]): Promise<void> {
    await this.tileCache?.addCommitted(folders);
  }

  /** Where the files of tiles are kept; undefined where that is the data folder. */
  get sharedStore(): ObjectStore | undefined {
    return this.tileCache?.objects;
  }

  /** Undefined on a node that has no shared store. */
  get cacheStats(): CacheStats | undefined {
    return this.tileCache?.cache.stats;
  }

  /** What the folder holds of a cluster; undefined on a node that is alone. */
  replica(): Promise<ReplicaRecord | undefined> {
    return this.catalogue.replica.get('state');
  }

  /**
   * Takes in a commit that others have made durable, and remembers what the folder holds then. Not synced: after a power cut
   * the state is an older one, from which the same commits come again. Reads as of an earlier commit are right where commit
   * `state.applied` follows the last one; after any other change, such as other slots, there are none. `applied` is called in the turn in
   * which the index changes.
   */
  async replicate(state: ReplicaRecord, commit: Commit, applied = () => {}): Promise<void> {
    const { replica, superseded } = this.catalogue;
    const { added = [] } = commit;
    await this.commitApplier.serialize(async () => {
      // Tiles of a slot that was here before: what is left of their files is of use again.
      const used = (await superseded.isEmpty())
        ? []
        : added.map((tile) => superseded.delete(tileFolder(tile)));
      await this.commitApplier.replicate(
        state.applied,
        commit,
        [...used, replica.set('state', state)],
        applied,
      );
    });
    this.tileCache?.prefetcher.add(added);
  }

  // The whole

  /**
   * Makes an empty folder for files on their way, such as uploads, and returns its absolute path. Its name begins with
   * `name`. The caller removes it; what a crash leaves is removed at the next open, unless the record of a job that goes on
   * names it.
   */
  scratchFolder(name = 'work'): Promise<string> {
    return makeScratch(this.dir, name);
  }

  /** The folder in which a job keeps what it may go on from after the process was killed. It goes when the job has ended. */
  jobScratch(job: string): Promise<string> {
    return makeJobScratch(this.dir, job);
  }

  /**
   * The folder in which work of this name keeps what it may go on from, whichever job does it. The caller removes it when the work is done;
   * the garbage collection of jobs removes what is left of others.
   */
  persistentScratch(name: string): Promise<string> {
    return makePersistentScratch(this.dir, name);
  }

  /** Makes what lies in a scratch folder durable; its files have been synced. `name` is the folder's own name. */
  syncScratch(name: string): Promise<void> {
    return syncScratch(this.dir, name);
  }

  removeScratch(name: string): Promise<void> {
    return removeScratch(this.dir, name);
  }

  /**
   * Removes results of jobs, and files that work could have gone on from, if they were last changed before the time `before` (ms since
   * 1970) and their job is not one of `isKept`.
   */
  async removeExpired(before: number, isKept: (job: string) => Promise<boolean>): Promise<void> {
    await expireResults(this.dir, before, isKept);
    await expireScratch(this.dir, before, isKept);
  }

  /** Makes the folder for the files that a job answers with, and returns its absolute path. */
  resultsFolder(job: string): Promise<string> {
    return createResultsFolder(this.dir, job);
  }

  /** Absolute path of a file that a job answered with. Throws TW_STORAGE_BAD_NAME. */
  resultPath(job: string, name: string): string {
    return resultFile(this.dir, job, name);
  }

  async stats(): Promise<StorageStats> {
    const { collections, scenes, models } = this.catalogue;
    return {
      collections: await count(collections.keys()),
      scenes: await count(scenes.keys()),
      tiles: this.index.size,
      models: await count(models.keys()),
      sweepError: this.versionGc.lastError === undefined ? null : messageOf(this.versionGc.lastError),
      snapshotError:
        this.persistentIndex.snapshotError === undefined
          ? null
          : messageOf(this.persistentIndex.snapshotError),
      writeError: this.writeError === undefined ? null : messageOf(this.writeError),
    };
  }

  /** Error of a failed write, after which no others are accepted until the next open; undefined if none has failed. */
  get writeError(): unknown {
    return this.catalogue.writeError;
  }

  /** Removes the files of versions that were replaced longer ago than the delay; else a timer does. */
  collectOldVersions(): Promise<void> {
    return this.versionGc.collect();
  }

  /** Waits for changes under way. Scene writes that are open are undone at the next open. */
  async close(): Promise<void> {
    try {
      await this.tileCache?.close();
      await this.commitApplier.serialize(() => this.versionGc.stop());
      await this.persistentIndex.close();
    } finally {
      await this.folder.close();
    }
  }
}

async function count(items: AsyncIterable<unknown>): Promise<number> {
  let n = 0;
  for await (const _ of items) n++;
  return n;
}
