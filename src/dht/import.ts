/** Imports the data folder of a single node into a cluster: its files into the tile store, its records into the commit log. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mapConcurrent, toArray } from '../async/index.js';
import type { CoordinationStore } from '../coordination/index.js';
import type { TilewrightError } from '../errors.js';
import { matchPixelSizes } from '../grid/index.js';
import {
  byCollection,
  type CollectionRecord,
  filesOf,
  type IndexRun,
  type ModelRecord,
  type ModelVersionRecord,
  modelRecordOf,
  newVersion,
  type ObjectStore,
  orIfMissing,
  type SceneRecord,
  Storage,
  sceneKey,
  storageCorrupt,
  storeCorrupt,
  type TileRecord,
  tileId,
  versionsOf,
  type WriteLock,
  withLock,
} from '../storage/index.js';
import { importCellsDiffer, importClusterNode, importFileDamaged, lockHeld } from './errors.js';
import { revokeLocksOf } from './log/fenced-lock.js';
import { ClusterLockManager } from './log/locks.js';
import { CommitLog } from './log/log.js';
import { epochNumber, openExistingCluster, readEpoch } from './recovery.js';
import { Replica } from './replica.js';
import { slotOfCell } from './slots.js';

/** Files that are uploaded at the same time. */
const CONCURRENT_UPLOADS = 16;

/**
 * Uploads the files of a data folder to the tile store of a cluster. The files get the names of new versions, which come from the locks
 * under which they are committed.
 */
class FileUploader {
  /** Bytes of the uploaded files. */
  bytes = 0;

  constructor(
    private readonly dir: string,
    private readonly objects: ObjectStore,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Checks that all files exist with their recorded sizes. Throws TW_DHT_MOVE_IN_FILE. */
  async require(records: (TileRecord | ModelVersionRecord)[]): Promise<void> {
    await mapConcurrent(records.flatMap(filesOf), CONCURRENT_UPLOADS, ({ path, bytes }) =>
      requireSize(join(this.dir, path), bytes),
    );
  }

  /** Throws TW_STORE_CORRUPT if a file does not match its checksum. `onRecord` is called once for each record. */
  async upload(
    records: (TileRecord | ModelVersionRecord)[],
    version: string,
    onRecord = () => {},
  ): Promise<void> {
    const files = records.flatMap((record) => {
      const targets = filesOf({ ...record, version });
      return filesOf(record).map((file, i) => ({ ...file, to: targets[i]!.path, isFirst: i === 0 }));
    });
    await mapConcurrent(files, CONCURRENT_UPLOADS, async ({ path, to, bytes, crc32, isFirst }) => {
      this.signal?.throwIfAborted();
      await this.objects.put(to, { file: join(this.dir, path) }, { crc32, signal: this.signal });
      this.bytes += bytes;
      if (isFirst) onRecord();
    });
  }
}

async function requireSize(path: string, bytes: number): Promise<void> {
  const info = await orIfMissing(stat(path), undefined);
  if (!info) throw importFileDamaged(path, 'it is missing');
  if (info.size !== bytes) throw importFileDamaged(path, `it has ${info.size} bytes instead of ${bytes}`);
}

/** The reason why tiles of two collections with the same id would not stack; undefined if they would. */
function cellDifference(own: CollectionRecord, other: CollectionRecord): string | undefined {
  const cells = ({ grid, precision }: CollectionRecord) => `${grid} cells of precision ${precision}`;
  if (cells(own) !== cells(other)) return `${cells(own)} here, ${cells(other)} in the cluster`;
  const sizes = own.pixelSizes?.flat() ?? [];
  const { fitted } = matchPixelSizes(other.pixelSizes ?? [], sizes);
  const odd = sizes.findIndex(({ x, y }, i) => fitted[i]!.x !== x || fitted[i]!.y !== y);
  if (odd < 0) return undefined;
  const text = ({ x, y }: { x: number; y: number }) => (x === y ? `${x} m` : `${x} x ${y} m`);
  return `pixels of ${text(sizes[odd]!)} here, ${text(fitted[odd]!)} in the cluster`;
}

function isSameScene(a: SceneRecord, b: SceneRecord): boolean {
  const keyOf = ({ fingerprint, committedAt, geocodes }: SceneRecord) =>
    `${fingerprint} ${committedAt} ${geocodes.join()}`;
  return keyOf(a) === keyOf(b);
}

function isSameTile(a: TileRecord, b: TileRecord): boolean {
  const keyOf = ({ createdAt, groups }: TileRecord) =>
    `${createdAt} ${groups.map(({ name, bytes, crc32 }) => `${name} ${bytes} ${crc32}`).join()}`;
  return keyOf(a) === keyOf(b);
}

function isSameModel(a: ModelRecord, b: ModelRecord): boolean {
  const keyOf = (model: ModelRecord) => JSON.stringify(versionsOf(model).map(({ files }) => files));
  return keyOf(a) === keyOf(b);
}

interface ImportOptions {
  /** The data folder of the single node, which no other process has open. */
  storage: Storage;
  objects: ObjectStore;
  coordination: CoordinationStore;
  /** Only reports what would be imported. */
  dryRun?: boolean;
  signal?: AbortSignal;
  onProgress?: (progress: ImportProgress) => void;
}

export interface ImportProgress {
  /** Tiles that are processed, out of `total`. */
  done: number;
  total: number;
  /** Bytes of the uploaded files. */
  bytes: number;
}

/** The numbers of imported records and of those that were present already. */
interface ImportCount {
  moved: number;
  present: number;
}

export interface ImportReport {
  /** Id of the cluster. */
  cluster: string;
  dryRun: boolean;
  collections: ImportCount;
  scenes: ImportCount;
  tiles: ImportCount;
  models: ImportCount;
  bytes: number;
  /** Records of which the cluster keeps another version: `scene <collection>/<scene>`, `tile <id>`, `model <id>`. */
  kept: string[];
  /** Records that could not be imported because they are damaged in the data folder. */
  failed: { what: string; code: string; message: string }[];
}

/** Derived tiles in one commit. */
const BATCH_TILES = 1000;
/** How long the import waits for a lock of another node. */
const LOCK_TIMEOUT_MS = 75_000;
/** Errors that affect a single record; the rest is imported. */
const DAMAGE_ERRORS = [storageCorrupt, storeCorrupt, importFileDamaged];

/**
 * Copies collections, scenes, derived tiles and models; the data folder stays unchanged. A scene is copied completely, in one commit, or
 * not at all. Records that the cluster already has are skipped, so an interrupted import can be repeated, and a second run changes
 * nothing. Throws TW_DHT_MOVE_IN_NODE, TW_DHT_NO_CLUSTER and TW_DHT_MOVE_IN_CELLS before anything is copied, and errors of the stores.
 */
export async function importFolder(options: ImportOptions): Promise<ImportReport> {
  const { storage, objects, coordination } = options;
  const known = await storage.replica();
  if (known) throw importClusterNode(storage.dir, known.cluster);
  const log = new CommitLog(coordination);
  const { id, prefixLengths } = await openExistingCluster(objects, coordination, log);
  // The records of the cluster, as a node without slots knows them.
  const scratch = await storage.scratch.make('join');
  const view = await Storage.open(scratch, { reserve: 0 });
  try {
    const replica: Replica = await Replica.open({
      ...{ storage: view, objects, log, cluster: id, prefixLengths },
      // Without these slots, the next commit waits for them and then ends with TW_DHT_SLOTS_OUTDATED; the import can be repeated.
      onOutdated: () => void replica.loadSlots(replica.storedSlots).catch(() => undefined),
    });
    try {
      const ownerLabel = `node join of ${storage.folder.node.id}`;
      // Only this process has the folder open, so every earlier import with this label has ended.
      if (!options.dryRun) await revokeLocksOf(coordination, (one) => one === ownerLabel);
      await replica.catchUp();
      replica.start();
      // The files are in the data folder, which is not a cache; the records of the cluster are in the view.
      const source = { dir: storage.dir, catalogue: view.catalogue, addToCache: async () => {} };
      const shared = { coordination, log, objects, replica, prefixLengths };
      const epoch = await epochNumber(await readEpoch(coordination), objects);
      const locks = new ClusterLockManager({ storage: source, ownerLabel, ...shared, epoch });
      return await new FolderImport(options, id, view, replica, locks).run();
    } finally {
      await replica.close();
    }
  } finally {
    await view.close();
    await storage.scratch.remove(scratch);
  }
}

class FolderImport {
  private readonly report: Omit<ImportReport, 'bytes'>;
  private readonly files: FileUploader;
  private readonly total: number;
  private done = 0;

  constructor(
    private readonly options: ImportOptions,
    cluster: string,
    /** The records of the cluster. */
    private readonly view: Storage,
    private readonly replica: Replica,
    private readonly locks: ClusterLockManager,
  ) {
    const none = () => ({ moved: 0, present: 0 });
    this.report = {
      cluster,
      dryRun: options.dryRun ?? false,
      collections: none(),
      scenes: none(),
      tiles: none(),
      models: none(),
      kept: [],
      failed: [],
    };
    const { storage, objects, signal } = options;
    this.total = storage.index.size;
    this.files = new FileUploader(storage.dir, objects, signal);
  }

  async run(): Promise<ImportReport> {
    const { storage } = this.options;
    const collections = await toArray(storage.catalogue.collections.values());
    await this.requireSameCells(collections);
    for (const collection of collections) {
      await this.importCollection(collection);
      for await (const { id, record, error } of storage.scanScenes(collection.id)) {
        const what = `scene ${collection.id}/${id}`;
        if (record) await this.reportDamage(what, () => this.importScene(collection, record));
        else this.fail(what, error);
      }
    }
    await this.importDerived();
    for await (const { key, record, error } of storage.catalogue.models.scan()) {
      if (record) await this.reportDamage(`model ${key}`, () => this.importModel(record));
      else this.fail(`model ${key}`, error);
    }
    return { ...this.report, bytes: this.files.bytes };
  }

  /** Checked before anything is copied. Throws TW_DHT_MOVE_IN_CELLS, which names all collections that do not match. */
  private async requireSameCells(collections: CollectionRecord[]): Promise<void> {
    const differing: string[] = [];
    for (const own of collections) {
      const other = await this.view.catalogue.collections.get(own.id);
      const difference = other && cellDifference(own, other);
      if (difference) differing.push(`${own.id} (${difference})`);
    }
    if (differing.length > 0) throw importCellsDiffer(differing);
  }

  /** Imports the record of a collection, or the pixel sizes that the cluster does not know. */
  private async importCollection(own: CollectionRecord): Promise<void> {
    const { collections } = this.report;
    const missing = async () => {
      const known = await this.view.catalogue.collections.get(own.id);
      if (!known) return own;
      const difference = cellDifference(own, known);
      if (difference) throw importCellsDiffer([`${own.id} (${difference})`]);
      const sizes = known.pixelSizes ?? [];
      const { known: pixelSizes } = matchPixelSizes(sizes, own.pixelSizes?.flat() ?? []);
      return pixelSizes === sizes ? undefined : { ...known, pixelSizes };
    };
    if (!(await missing())) {
      collections.present++;
      return;
    }
    collections.moved++;
    if (this.report.dryRun) return;
    await withLock(this.locks.lockShared(), (lock) =>
      lock.commit(async () => {
        const record = await missing();
        return record ? { edits: [{ table: 'collections', key: own.id, record }] } : {};
      }),
    );
  }

  private async importScene(collection: CollectionRecord, scene: SceneRecord): Promise<void> {
    const { storage } = this.options;
    const { scenes, tiles, kept, dryRun } = this.report;
    const key = sceneKey(collection.id, scene.id);
    const known = await this.view.catalogue.scenes.get(key);
    const count = scene.geocodes.length;
    if (known) {
      if (isSameScene(known, scene)) {
        scenes.present++;
        tiles.present += count;
      } else kept.push(`scene ${key}`);
      this.reportProgress(count);
      return;
    }
    const ids = scene.geocodes.map((geocode) => tileId(collection.id, scene.id, collection.grid, geocode));
    const own = (await storage.catalogue.tiles.scanMany(ids)).map((scanned, i) => {
      if (scanned?.error) throw scanned.error;
      if (!scanned) throw importFileDamaged(ids[i]!, 'it has no record');
      return scanned.record;
    });
    await this.files.require(own);
    if (!dryRun)
      await withLock(
        this.acquireLock(() => this.locks.lockScene(collection.id, scene.id)),
        async (lock) => {
          const { version } = lock;
          await this.uploadTiles(own, version);
          await lock.commit(async () => {
            // If another node has imported the scene before this lock was granted, that version stays.
            if (await this.view.catalogue.scenes.has(key)) return {};
            const added = own.map((tile) => withVersion(tile, version));
            return { added, edits: [{ table: 'scenes', key, record: withSceneVersion(scene, version) }] };
          });
        },
      );
    else this.reportProgress(count);
    scenes.moved++;
    tiles.moved += count;
  }

  /** Imports derived tiles in batches. */
  private async importDerived(): Promise<void> {
    const { storage } = this.options;
    const { tiles, kept, dryRun } = this.report;
    const { index } = storage;
    const ids: string[] = [];
    const isDerived = ({ columns: { source }, sources }: IndexRun) => {
      const raw = sources.codeOf('raw');
      return (row: number) => source[row] !== raw;
    };
    await index.forEach({ where: isDerived }, (rows) => (row) => ids.push(rows.idOf(row)));
    for (let at = 0; at < ids.length; at += BATCH_TILES) {
      const own = await storage.getTiles(ids.slice(at, at + BATCH_TILES));
      // Loads the slots of these tiles into the view, which then shows the tiles that the cluster has.
      await this.replica.loadSlots(new Set(own.map((tile) => slotOfCell(tile, this.locks.prefixLengths))));
      const present = new Map(
        (await this.view.getTiles(own.map(({ id }) => id))).map((tile) => [tile.id, tile]),
      );
      const fresh: TileRecord[] = [];
      for (const tile of own) {
        const known = present.get(tile.id);
        if (!known) {
          if (await this.reportDamage(`tile ${tile.id}`, () => this.files.require([tile]))) fresh.push(tile);
          continue;
        }
        if (isSameTile(known, tile)) tiles.present++;
        else kept.push(`tile ${tile.id}`);
        this.reportProgress(1);
      }
      if (fresh.length === 0) continue;
      if (dryRun) {
        this.reportProgress(fresh.length);
        tiles.moved += fresh.length;
      } else for (const own of byCollection(fresh).values()) await this.importDerivedOf(own);
    }
  }

  /** Imports derived tiles of one collection. The lock protects their files from garbage collection until its only commit. */
  private async importDerivedOf(own: TileRecord[]): Promise<void> {
    await withLock(this.locks.lockShared(), async (lock) => {
      const { version } = lock;
      const sent: TileRecord[] = [];
      for (const tile of own)
        if (await this.reportDamage(`tile ${tile.id}`, () => this.uploadTiles([tile], version)))
          sent.push(tile);
      await lock.commit(async () => {
        const arrived = sent.filter(({ id }) => !this.view.index.has(id));
        return { added: arrived.map((tile) => withVersion(tile, version)) };
      });
      this.report.tiles.moved += sent.length;
    });
  }

  private async importModel(own: ModelRecord): Promise<void> {
    const { models, kept, dryRun } = this.report;
    const known = await this.view.models.get(own.id);
    if (known) {
      if (isSameModel(known, own)) models.present++;
      else kept.push(`model ${own.id}`);
      return;
    }
    const versions = versionsOf(own);
    await this.files.require(versions);
    if (!dryRun)
      await withLock(this.locks.lockShared(), async (lock) => {
        // New names, the oldest first, because garbage collection may be about to remove the files of an interrupted import.
        const names = versions.map(newVersion).reverse();
        for (const [i, version] of versions.entries()) await this.files.upload([version], names[i]!);
        const record = modelRecordOf(versions.map((version, i) => ({ ...version, version: names[i]! })));
        await lock.commit(async () =>
          (await this.view.models.get(own.id)) ? {} : { edits: [{ table: 'models', key: own.id, record }] },
        );
      });
    models.moved++;
  }

  private uploadTiles(tiles: TileRecord[], version: string): Promise<void> {
    return this.files.upload(tiles, version, () => this.reportProgress(1));
  }

  /** Waits while another node holds the lock. */
  private async acquireLock(acquire: () => Promise<WriteLock>): Promise<WriteLock> {
    for (const startedAt = performance.now(); ; await sleep(500)) {
      this.options.signal?.throwIfAborted();
      try {
        return await acquire();
      } catch (error) {
        if (!lockHeld.is(error) || performance.now() - startedAt > LOCK_TIMEOUT_MS) throw error;
      }
    }
  }

  /** Returns false if a single record is damaged, which is then listed in the report. */
  private async reportDamage(what: string, work: () => Promise<void>): Promise<boolean> {
    this.options.signal?.throwIfAborted();
    try {
      await work();
      return true;
    } catch (error) {
      if (!DAMAGE_ERRORS.some((kind) => kind.is(error))) throw error;
      this.fail(what, error as TilewrightError);
      return false;
    }
  }

  private fail(what: string, { code, message }: TilewrightError): void {
    this.report.failed.push({ what, code, message });
  }

  private reportProgress(tiles: number): void {
    this.done += tiles;
    this.options.onProgress?.({ done: this.done, total: this.total, bytes: this.files.bytes });
  }
}

function withSceneVersion(scene: SceneRecord, version: string): SceneRecord {
  const { earlier } = scene;
  return { ...scene, version, ...(earlier && { earlier: earlier.map((one) => ({ ...one, version })) }) };
}

/** The tile with a version of the cluster. `madeAs` keeps its original version, which derived tiles refer to. */
function withVersion(tile: TileRecord, version: string): TileRecord {
  return { ...tile, version, madeAs: tile.madeAs ?? tile.version };
}
