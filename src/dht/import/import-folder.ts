/** Moves what a single node has stored into a cluster: its files into the tile store, its records into the commit log. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CoordinationStore } from '../../coordination/index.js';
import type { TilewrightError } from '../../errors.js';
import { matchPixelSizes } from '../../grid/index.js';
import {
  byCollection,
  type CollectionRecord,
  type IndexRun,
  type ModelRecord,
  modelRecordOf,
  newVersion,
  type ObjectStore,
  type SceneRecord,
  Storage,
  sceneKey,
  storageCorrupt,
  storeCorrupt,
  type TileRecord,
  tileId,
  versionsOf,
  type WriteLock,
} from '../../storage/index.js';
import { ClusterLockManager } from '../commit/cluster-lock-manager.js';
import { CommitLog } from '../commit/commit-log.js';
import { revokeLocksOf } from '../commit/fenced-lock.js';
import { importCellsDiffer, importClusterNode, importFileDamaged, lockHeld } from '../errors.js';
import { slotOfCell } from '../placement/slots.js';
import { openExistingCluster } from '../recovery/cluster-identity.js';
import { epochNumber, readEpoch } from '../recovery/restore-epoch.js';
import { Replica } from '../replication/replica.js';
import { FileUploader } from './file-uploader.js';
import { cellDifference, isSameModel, isSameScene, isSameTile } from './record-equality.js';

export interface ImportOptions {
  /** The folder of the single node, which nobody else has open. */
  storage: Storage;
  objects: ObjectStore;
  coordination: CoordinationStore;
  /** Tells what would be moved, and moves nothing. */
  dryRun?: boolean;
  signal?: AbortSignal;
  onProgress?: (progress: ImportProgress) => void;
}

export interface ImportProgress {
  /** Tiles that are dealt with, of all. */
  done: number;
  total: number;
  /** Of files that were sent. */
  bytes: number;
}

/** How many were moved, and how many were there already. */
export interface ImportCount {
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
  /** What the cluster has another version of, which stays: `scene <collection>/<scene>`, `tile <id>`, `model <id>`. */
  kept: string[];
  /** What could not be moved, because it is damaged here. */
  failed: { what: string; code: string; message: string }[];
}

/** Derived tiles of one commit. */
const BATCH_TILES = 1000;
/** How long somebody else's claim is waited for, ms. */
const LOCK_TIMEOUT_MS = 75_000;
/** Of one thing alone: the rest is moved. */
const DAMAGE_ERRORS = [storageCorrupt, storeCorrupt, importFileDamaged];

/**
 * Copies collections, scenes, derived tiles and models; the folder stays as it is. A scene comes whole, in one commit, or not at all.
 * What the cluster has already is passed over, so that it may be called again after it was cut off, and the second call
 * changes nothing. Throws TW_DHT_MOVE_IN_NODE, TW_DHT_NO_CLUSTER, TW_DHT_MOVE_IN_CELLS before anything is moved, and the errors of the
 * stores.
 */
export async function importFolder(options: ImportOptions): Promise<ImportReport> {
  const { storage, objects, coordination } = options;
  const known = await storage.replica();
  if (known) throw importClusterNode(storage.dir, known.cluster);
  const log = new CommitLog(coordination);
  const { id, prefixLengths } = await openExistingCluster(objects, coordination, log);
  // The records of the cluster, as a node knows them that owns no slots.
  const scratch = await storage.scratch.make('join');
  const view = await Storage.open(scratch, { reserve: 0 });
  try {
    const replica = await Replica.open({ storage: view, objects, log, cluster: id, prefixLengths });
    try {
      const ownerLabel = `node join of ${storage.folder.node.id}`;
      // Nobody else has the folder, so an earlier process with this name has ended.
      if (!options.dryRun) await revokeLocksOf(coordination, (one) => one === ownerLabel);
      await replica.catchUp();
      replica.start();
      // Files come from the folder, which is no cache; what the cluster has is in the view.
      const source = { dir: storage.dir, catalogue: view.catalogue, addToCache: async () => {} };
      const shared = { coordination, log, objects, replica, prefixLengths };
      const epoch = await epochNumber(await readEpoch(coordination), objects);
      const claims = new ClusterLockManager({ storage: source, ownerLabel, ...shared, epoch });
      return await new FolderImport(options, id, view, replica, claims).run();
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
    /** What the cluster has. */
    private readonly view: Storage,
    private readonly replica: Replica,
    private readonly claims: ClusterLockManager,
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
    const collections: CollectionRecord[] = [];
    for await (const collection of storage.collections()) collections.push(collection);
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

  /** Before anything is moved. Throws TW_DHT_MOVE_IN_CELLS, which names all that do not fit. */
  private async requireSameCells(collections: CollectionRecord[]): Promise<void> {
    const differing: string[] = [];
    for (const own of collections) {
      const other = await this.view.getCollection(own.id);
      const difference = other && cellDifference(own, other);
      if (difference) differing.push(`${own.id} (${difference})`);
    }
    if (differing.length > 0) throw importCellsDiffer(differing);
  }

  /** The record of a collection, or the pixel sizes that the cluster's does not know. */
  private async importCollection(own: CollectionRecord): Promise<void> {
    const { collections } = this.report;
    const missing = async () => {
      const known = await this.view.getCollection(own.id);
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
    await this.withLock(this.claims.lockShared(), (claim) =>
      claim.commit(async () => {
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
    await this.files.requireTiles(own);
    if (!dryRun)
      await this.withLock(
        this.acquireLock(() => this.claims.lockScene(collection.id, scene.id)),
        async (claim) => {
          const { version } = claim;
          await this.sendTiles(own, version);
          await claim.commit(async () => {
            // Another node has taken it in meanwhile, before this claim: that one stays.
            if (await this.view.catalogue.scenes.has(key)) return {};
            const added = own.map((tile) => withVersion(tile, version));
            return { added, edits: [{ table: 'scenes', key, record: { ...scene, version } }] };
          });
        },
      );
    else this.reportProgress(count);
    scenes.moved++;
    tiles.moved += count;
  }

  /** Tiles made from others, in batches. */
  private async importDerived(): Promise<void> {
    const { storage } = this.options;
    const { tiles, kept, dryRun } = this.report;
    const { index } = storage;
    const ids: string[] = [];
    const isDerived = ({ columns: { source }, sources }: IndexRun) => {
      const raw = sources.codeOf('raw');
      return (row: number) => source[row] !== raw;
    };
    index.forEach({ where: isDerived }, (rows) => (row) => ids.push(rows.idOf(row)));
    for (let at = 0; at < ids.length; at += BATCH_TILES) {
      const own = await storage.getTiles(ids.slice(at, at + BATCH_TILES));
      // Of these slots the view gets the tiles, to tell what is there.
      await this.replica.loadSlots(new Set(own.map((tile) => slotOfCell(tile, this.claims.prefixLengths))));
      const present = new Map(
        (await this.view.getTiles(own.map(({ id }) => id))).map((tile) => [tile.id, tile]),
      );
      const fresh: TileRecord[] = [];
      for (const tile of own) {
        const known = present.get(tile.id);
        if (!known) {
          if (await this.reportDamage(`tile ${tile.id}`, () => this.files.requireTiles([tile])))
            fresh.push(tile);
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

  /** Tiles of one collection. A claim protects their files from a sweep until its one commit. */
  private async importDerivedOf(own: TileRecord[]): Promise<void> {
    await this.withLock(this.claims.lockShared(), async (claim) => {
      const { version } = claim;
      const sent: TileRecord[] = [];
      for (const tile of own)
        if (await this.reportDamage(`tile ${tile.id}`, () => this.sendTiles([tile], version)))
          sent.push(tile);
      await claim.commit(async () => {
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
    for (const version of versions) await this.files.requireModel(version);
    if (!dryRun)
      await this.withLock(this.claims.lockShared(), async (claim) => {
        // New names, the oldest first: a sweep may be about to remove what a try that was cut off has sent.
        const names = versions.map(newVersion).reverse();
        for (const [i, version] of versions.entries()) await this.files.uploadModel(version, names[i]!);
        const record = modelRecordOf(versions.map((version, i) => ({ ...version, version: names[i]! })));
        await claim.commit(async () =>
          (await this.view.models.get(own.id)) ? {} : { edits: [{ table: 'models', key: own.id, record }] },
        );
      });
    models.moved++;
  }

  // How it is done

  private sendTiles(tiles: TileRecord[], version: string): Promise<void> {
    return this.files.uploadTiles(tiles, version, () => this.reportProgress(1));
  }

  /** Waits where another works on the same. */
  private async acquireLock(take: () => Promise<WriteLock>): Promise<WriteLock> {
    for (const begun = performance.now(); ; await sleep(500)) {
      this.options.signal?.throwIfAborted();
      try {
        return await take();
      } catch (error) {
        if (!lockHeld.is(error) || performance.now() - begun > LOCK_TIMEOUT_MS) throw error;
      }
    }
  }

  private async withLock(
    claim: Promise<WriteLock>,
    work: (claim: WriteLock) => Promise<void>,
  ): Promise<void> {
    const held = await claim;
    try {
      await work(held);
    } finally {
      await held.release();
    }
  }

  /** Whether it was done; damage of one thing is told in the report. */
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

/** A tile under a version of the cluster. It keeps the one that it was made as, which tiles made from it refer to. */
function withVersion(tile: TileRecord, version: string): TileRecord {
  return { ...tile, version, madeAs: tile.madeAs ?? tile.version };
}
