/** The store of one node: files of tiles and models, their records, and the index that searches use. */
import { join } from 'node:path';
import { messageOf, type TilewrightError } from '../errors.js';
import type { ImageFile } from '../raster/index.js';
import { type Catalogue, type ScanResult, sceneKey } from './catalogue.js';
import { CollectionStore, requireSameCells } from './collection-write.js';
import type { ColumnIndex } from './column-index/column-index.js';
import { type IndexLoad, PersistentIndex } from './column-index/persistent-index.js';
import { type Commit, CommitApplier } from './commit.js';
import { DataFolder, VersionGc } from './data-folder.js';
import { DerivedWrite } from './derived-write.js';
import { DiskReserve } from './disk.js';
import { sceneWriteMisuse } from './errors.js';
import type { CacheStats } from './file-cache.js';
import { checkedName, filesOfGroups, type TileLayout, tileFolder, tileId, tileImage } from './file-names.js';
import { ModelStore } from './models.js';
import type { ObjectStore } from './object-store/object-store.js';
import {
  type CollectionRecord,
  type GroupRecord,
  type ReplicaRecord,
  type SceneRecord,
  type TileRecord,
  tileVersions,
} from './records.js';
import { intactCellsInStore, intactCellsOnDisk, type KeepCell, SceneWrite } from './scene-write.js';
import { Results, Scratch } from './scratch.js';
import { TextureStore } from './textures.js';
import { TileCache } from './tile-cache.js';
import { type CountedLockManager, LocalLockManager, type LockManager } from './write-lock.js';

/** Time for which the files of a replaced version stay for clients that have found them in a search. */
const VERSION_GC_DELAY_MS = 10 * 60_000;

/** The record of a collection that its first scene creates. */
export type NewCollection = Omit<CollectionRecord, 'createdAt'>;

export interface StorageStats {
  collections: number;
  scenes: number;
  tiles: number;
  models: number;
  /** Error of the last attempt to remove replaced files; null if it succeeded. */
  sweepError: string | null;
  /** Error of the last attempt to write the snapshot of the index; null if it succeeded. */
  snapshotError: string | null;
  /** Error after which no writes are accepted until the next open; null if there was none. */
  writeError: string | null;
}

export interface StorageOptions {
  /** Time for which the files of a replaced version stay, ms. */
  sweepDelay?: number;
  /** Bytes of the disk that writes leave free; 0 for none. By default 2 % of the disk, 2 GB at most. */
  reserve?: number;
  /** Number of changed tiles after which a snapshot of the index is written. One is also written at close. */
  snapshotAfter?: number;
  /** Maximum bytes of tile files that are also in the object store. By default only the reserve limits them. */
  cache?: number;
}

/** Tile records that are read and decoded at a time. */
const RECORDS_AT_ONCE = 256;

/** One open data folder. All changes go through `CommitApplier`, which maintains the invariants. */
export class Storage {
  /** Check it before large writes. Scene writes check it themselves. */
  readonly reserve: DiskReserve;
  /** Changes of collections, scenes and tiles that exist. */
  readonly collections: CollectionStore;
  readonly models: ModelStore;
  readonly textures: TextureStore;
  /** Folders for temporary files, such as uploads. */
  readonly scratch: Scratch;
  /** Files that jobs return. */
  readonly results: Results;
  private readonly persistentIndex: PersistentIndex;
  private readonly versionGc: VersionGc;
  private readonly commitApplier: CommitApplier;
  private locks: LockManager;
  private clusterLocks: CountedLockManager | undefined;
  private tileCache: TileCache | undefined;

  private constructor(
    readonly folder: DataFolder,
    private readonly options: StorageOptions,
  ) {
    const { dir, catalogue } = folder;
    const { sweepDelay = VERSION_GC_DELAY_MS, reserve, snapshotAfter } = options;
    this.reserve = new DiskReserve(dir, reserve);
    this.versionGc = new VersionGc(folder, sweepDelay, (folders) => this.tileCache?.cache.forget(folders));
    this.persistentIndex = new PersistentIndex(dir, catalogue, this.reserve, snapshotAfter);
    this.commitApplier = new CommitApplier(catalogue, this.persistentIndex, (folders) => {
      this.tileCache?.cache.markEvictFirst(folders);
      this.versionGc.schedule();
    });
    this.locks = new LocalLockManager(this.commitApplier);
    this.collections = new CollectionStore(catalogue, () => this.locks);
    this.models = new ModelStore(
      folder,
      () => this.locks,
      () => this.tileCache?.fetcher,
    );
    this.textures = new TextureStore(this.commitApplier, () => this.locks);
    this.scratch = new Scratch(dir);
    this.results = new Results(dir);
  }

  /**
   * Opens or creates a data folder, removes what interrupted writes have left, and loads the index. Throws the errors of
   * `DataFolder.open`.
   */
  static async open(dir: string, options: StorageOptions = {}): Promise<Storage> {
    const storage = new Storage(await DataFolder.open(dir), options);
    try {
      await storage.refuseLostCommits();
      await storage.scratch.clean(storage.catalogue);
      await storage.versionGc.start();
      await storage.persistentIndex.open();
      storage.index.startAt((await storage.replica())?.applied ?? 0);
      return storage;
    } catch (error) {
      await storage.close();
      throw error;
    }
  }

  /** Throws TW_STORAGE_DAMAGED if the end of the catalogue is missing, as after a copy that was cut short. */
  private async refuseLostCommits(): Promise<void> {
    const lost = await this.persistentIndex.lostCommit();
    if (lost === undefined) return;
    const error = await this.folder.markDamaged(`the catalogue ends before commit ${lost} of the index`);
    // Without it, the folder opens with the remaining records once the mark is removed.
    await this.persistentIndex.removeSnapshot();
    throw error;
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

  /** A TW_STORAGE_CORRUPT error for each damaged tile record found so far, with its key. These tiles are not searchable. */
  get damaged(): TilewrightError[] {
    return [...this.persistentIndex.damaged.values()];
  }

  get catalogue(): Catalogue {
    return this.folder.catalogue;
  }

  // Collections

  /**
   * The collection of this id, or, if it does not exist, the record that its first scene will commit. That commit fixes grid
   * and precision: others are refused with TW_STORAGE_COLLECTION_FIXED.
   */
  async collectionFor(wanted: NewCollection): Promise<CollectionRecord> {
    checkedName('collection id', wanted.id);
    checkedName('grid', wanted.grid);
    const existing = await this.catalogue.collections.get(wanted.id);
    return existing ? requireSameCells(existing, wanted) : { ...wanted, createdAt: Date.now() };
  }

  // Scenes

  getScene(collection: string, scene: string): Promise<SceneRecord | undefined> {
    return this.catalogue.scenes.get(sceneKey(collection, scene));
  }

  /** The scenes of a collection with their ids, also damaged ones; at most `limit` scenes, and only those after the id `after`. */
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
   * Begins to write a scene, new or in place of its former tiles. `geocodes` are all cells that it may touch; `keep` selects the other
   * cells whose tiles stay, by default none. Throws TW_STORAGE_SCENE_BUSY while another write of it is in progress,
   * TW_STORAGE_COLLECTION_FIXED. The caller ends the write by `commit` or `abort`.
   */
  async beginScene(
    wanted: NewCollection,
    scene: string,
    geocodes: Iterable<string>,
    keep: KeepCell = () => false,
  ): Promise<SceneWrite> {
    const collection = await this.collectionFor(wanted);
    const { dir, catalogue, reserve } = this;
    const lock = await this.locks.lockScene(collection.id, scene);
    try {
      const write = new SceneWrite(dir, catalogue, lock, reserve, collection, scene, geocodes, keep);
      await write.begin();
      return write;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /**
   * Begins to write some tiles of a scene for another node of the cluster, whose write of the scene has the given version. The caller ends
   * it by `handOver` or `abort`.
   */
  async beginScenePart(
    collection: CollectionRecord,
    scene: string,
    geocodes: Iterable<string>,
    version: string,
  ): Promise<SceneWrite> {
    const { dir, catalogue, reserve } = this;
    const lock = this.clusterLocks?.joinLock(version);
    if (!lock) throw sceneWriteMisuse(scene, 'this node belongs to no cluster');
    try {
      const write = new SceneWrite(dir, catalogue, lock, reserve, collection, scene, geocodes, () => true);
      await write.begin();
      return write;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /**
   * Returns those of the given cells whose tiles of a scene are complete and undamaged. Reads all bytes of the tiles; with an object store,
   * it only compares the sizes of the objects of this node's tiles.
   */
  intactCells(scene: SceneRecord, { grid }: CollectionRecord, cells: string[]): Promise<string[]> {
    const versions = tileVersions(scene);
    const tiles = cells.map((geocode) => ({
      ...{ grid, geocode, version: versions.get(geocode)! },
      id: tileId(scene.collection, scene.id, grid, geocode),
    }));
    const { dir, catalogue, tileCache } = this;
    return tileCache
      ? intactCellsInStore(tileCache.objects, catalogue, tiles)
      : intactCellsOnDisk(dir, catalogue, tiles);
  }

  // Tiles

  /**
   * Records of these ids in this order, without deleted and damaged ones. With `seq` they are as of that commit of the cluster, as of
   * which the index has returned the ids; throws TW_STORAGE_TOO_OLD.
   */
  async getTiles(ids: string[], seq = Infinity): Promise<TileRecord[]> {
    const records: TileRecord[] = [];
    // Records are decoded on this thread: others have their turn in between.
    for (let from = 0; from < ids.length; from += RECORDS_AT_ONCE) {
      const some = ids.slice(from, from + RECORDS_AT_ONCE);
      const tiles = await this.catalogue.tiles.scanMany(some);
      // In one turn, so that the records and the later changes belong to one moment.
      const former = some.map((id) => this.commitApplier.undoRecords.get(id, seq));
      for (const [i, scanned] of tiles.entries()) {
        const record = former[i] ?? scanned?.record;
        if (record) records.push(record);
        else if (scanned?.error) await this.exclude(scanned.key);
      }
    }
    return records;
  }

  /** Removes a tile from the index if its record is still damaged. */
  private exclude(id: string): Promise<void> {
    return this.commitApplier.serialize(async () => {
      const [scanned] = await this.catalogue.tiles.scanMany([id]);
      if (scanned?.error) this.persistentIndex.exclude(id, scanned.error);
    });
  }

  /** True if index and catalogue agree on a tile, at a moment between commits. */
  isIndexConsistent(id: string): Promise<boolean> {
    return this.commitApplier.serialize(async () => {
      const [scanned] = await this.catalogue.tiles.scanMany([id]);
      return scanned?.record
        ? this.index.agrees(scanned.record)
        : scanned !== undefined || !this.index.has(id);
    });
  }

  /** The image of a band group in its file. Throws TW_STORAGE_BAD_NAME. */
  tileImage(tile: TileLayout, group: string): ImageFile {
    const image = tileImage(tile, group);
    return { ...image, path: join(this.dir, image.path) };
  }

  /** Begins to write derived tiles. The caller ends the write by `close`. */
  async beginDerived(): Promise<DerivedWrite> {
    return new DerivedWrite(this.dir, this.catalogue, await this.locks.lockShared(), this.reserve);
  }

  // In a cluster

  /**
   * Uses `locks` for all changes from now on, and `objects` for files made on other nodes. The files of tiles become a cache; those of this
   * node's tiles are fetched in the background, and errors of that are passed to `onFailure`.
   */
  enterCluster(
    locks: CountedLockManager,
    objects: ObjectStore,
    onFailure: (error: unknown) => void = () => {},
  ): void {
    this.locks = locks;
    this.clusterLocks = locks;
    const isWriting = () => locks.heldCount > 0;
    this.tileCache = new TileCache(this, objects, this.options.cache, isWriting, onFailure);
  }

  /**
   * Fetches the files of a tile of the groups that are not local; all stay for at least ten seconds. Throws the TW_STORE_ errors;
   * TW_STORE_LOST means that a file no longer exists anywhere.
   */
  async ensureFiles(tile: TileLayout, groups: GroupRecord[]): Promise<void> {
    (await this.pinFiles(tile, groups))();
  }

  /** Like `ensureFiles`, but the files stay until the returned function is called. */
  async pinFiles(tile: TileLayout, groups: GroupRecord[]): Promise<() => void> {
    return (await this.tileCache?.fetcher.fetchAndPin(tile, filesOfGroups(tile, groups))) ?? (() => {});
  }

  /** Adds folders of tiles that are committed or handed over, which are in the object store, to the cache: they may be evicted. */
  async addToCache(folders: string[]): Promise<void> {
    await this.tileCache?.add(folders);
  }

  /** The object store with the files of tiles; undefined if they are in the data folder only. */
  get sharedStore(): ObjectStore | undefined {
    return this.tileCache?.objects;
  }

  /** Undefined on a node without an object store. */
  get cacheStats(): CacheStats | undefined {
    return this.tileCache?.cache.stats;
  }

  /** The part of a cluster that the folder has; undefined on a single node. */
  replica(): Promise<ReplicaRecord | undefined> {
    return this.catalogue.replica.get('state');
  }

  /**
   * Applies a commit that other nodes have made durable, and stores `state`. Not synced: after a power cut the state is an older
   * one, from which the same commits are applied again. Reads as of an earlier commit are possible if commit `state.applied` follows
   * the last one; any other change, such as other slots, ends them. `applied` is called in the turn in which the index changes.
   */
  async replicate(state: ReplicaRecord, commit: Commit, applied = () => {}): Promise<void> {
    const { replica, superseded } = this.catalogue;
    const { added = [] } = commit;
    await this.commitApplier.serialize(async () => {
      // Tiles of a slot that this node had before: their remaining files are in use again.
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
    this.tileCache?.addReplicated(added);
  }

  // Maintenance

  async stats(): Promise<StorageStats> {
    return {
      ...(await this.catalogue.counts()),
      tiles: this.index.size,
      sweepError: messageOrNull(this.versionGc.lastError),
      snapshotError: messageOrNull(this.persistentIndex.snapshotError),
      writeError: messageOrNull(this.catalogue.writeError),
    };
  }

  /** Removes the files of versions that were replaced longer ago than the delay. A timer does the same. */
  collectOldVersions(): Promise<void> {
    return this.versionGc.collect();
  }

  /** Waits for changes in progress. The next open undoes scene writes that are still open. */
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

const messageOrNull = (error: unknown) => (error === undefined ? null : messageOf(error));
