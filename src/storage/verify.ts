/** Checks an entire data folder: records against files, and files against records. Memory use does not depend on its size. */
import { lstat, opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type GridName, grids } from '../grid/index.js';
import { sceneKey, type Table } from './catalogue.js';
import type { Cursor } from './column-index/sort-order.js';
import { isMissingFile, onDisk, orIfMissing } from './disk.js';
import { storeCorrupt, storeNotFound } from './errors.js';
import {
  filesOf,
  modelFolder,
  modelId,
  type RecordedFile,
  tileFolder,
  tileId,
  tileOfFolder,
} from './file-names.js';
import { checksumOf, fileChunks, isIntact, stagingPath, VERSION_DEPTH } from './files.js';
import { versionsOf } from './models.js';
import type { ObjectStore } from './object-store/object-store.js';
import { type ModelVersionRecord, type SceneRecord, type TileRecord, tileVersions } from './records.js';
import type { Storage } from './storage.js';

/** A fault that `verify` reports. */
interface Problem {
  /**
   * `missing`: a record's file, a scene's tile or the schema of tiles is missing; `size`, `checksum`: a file differs from its record;
   * `corrupt-record`: a record does not match its own checksum; `no-scene`: no scene names a raw tile; `index`: the
   * index in memory and the record of a tile differ.
   */
  kind: 'missing' | 'size' | 'checksum' | 'corrupt-record' | 'no-scene' | 'index';
  /** Path relative to the data folder, `<table> <key>`, or `object <name> of <table> <key>` of an object store. */
  what: string;
}

/** A file that a record names. */
interface ExpectedFile extends RecordedFile {
  /** The record, as `<table> <key>`. */
  record: string;
  /** True if the record has not been replaced. */
  isCurrent(): Promise<boolean>;
}

const CONCURRENT_OBJECTS = 8;
const RETRY_INTERVAL_MS = 5000;

/**
 * Compares objects of an object store, and local copies of them, with their records. A missing object is looked up again for
 * `missingTimeoutMs` before it is reported: its record may have been replaced, or a replicated store may lag. A damaged local copy is
 * removed, so that it is fetched again.
 */
class ObjectVerifier {
  files = 0;
  bytes = 0;
  private readonly running = new Set<Promise<void>>();
  private readonly missing: ExpectedFile[] = [];
  private readonly errors: unknown[] = [];

  constructor(
    private readonly dir: string,
    private readonly objects: ObjectStore,
    private readonly onProblem: (kind: Problem['kind'], what: string) => void,
    private readonly missingTimeoutMs: number,
  ) {}

  /** Starts the check of a file; resolves when the next check may start. */
  async check(file: ExpectedFile): Promise<void> {
    if (this.errors.length > 0) throw this.errors[0];
    const run = this.verifyObject(file)
      .then((exists) => {
        if (!exists) this.missing.push(file);
      })
      .catch((error) => {
        this.errors.push(error);
      })
      .finally(() => this.running.delete(run));
    this.running.add(run);
    if (this.running.size >= CONCURRENT_OBJECTS) await Promise.race(this.running);
  }

  /** Waits for all checks, and repeats the checks of missing objects. */
  async end(): Promise<void> {
    await Promise.all(this.running);
    if (this.errors.length > 0) throw this.errors[0];
    let missing = this.missing;
    for (let waitedMs = 0; missing.length > 0; waitedMs += RETRY_INTERVAL_MS) {
      const stillMissing: ExpectedFile[] = [];
      for (const file of missing)
        if ((await file.isCurrent()) && !(await this.verifyObject(file))) stillMissing.push(file);
      missing = stillMissing;
      if (missing.length === 0 || waitedMs >= this.missingTimeoutMs) break;
      await sleep(Math.min(RETRY_INTERVAL_MS, this.missingTimeoutMs));
    }
    for (const { path, record } of missing) this.onProblem('missing', `object ${path} of ${record}`);
  }

  /** Reads an entire object; returns false if it does not exist. */
  private async verifyObject(file: ExpectedFile): Promise<boolean> {
    const { path, bytes, crc32, record } = file;
    const what = `object ${path} of ${record}`;
    let bytesRead = 0;
    try {
      for await (const chunk of await this.objects.stream(path, { crc32 }))
        bytesRead += (chunk as Buffer).length;
    } catch (error) {
      if (storeNotFound.is(error)) return false;
      if (!storeCorrupt.is(error)) throw error;
      this.onProblem(bytesRead === bytes ? 'checksum' : 'size', what);
    }
    this.files++;
    this.bytes += bytesRead;
    const local = join(this.dir, path);
    if (!(await isIntact(local, file))) await rm(local, { force: true });
    return true;
  }
}

/** Maximum number of listed problems, and of listed orphans; all are counted. */
const MAX_LISTED = 10_000;
const INDEX_PAGE_TILES = 1000;

/** A file or folder that no record names. It uses space but does no harm. */
interface Orphan {
  /** Relative to the data folder. */
  path: string;
  bytes: number;
}

interface VerifyProgress {
  tiles: number;
  files: number;
  bytes: number;
}

export interface VerifyReport extends VerifyProgress {
  problemCount: number;
  problems: Problem[];
  orphanCount: number;
  orphanBytes: number;
  orphans: Orphan[];
}

export interface VerifyOptions {
  /** In a cluster: true if this node owns the tiles of a cell. */
  isOwn?: (cell: { grid: GridName; geocode: string }) => boolean;
  /** Time for which a missing object is looked up again before it is reported, ms; a minute by default. */
  missingTimeoutMs?: number;
}

/**
 * Reads every record and every file once, and calls `onProgress` after each tile. It changes nothing, except on a node with an
 * object store: there it reads the objects, and removes damaged local copies.
 */
export async function verify(
  storage: Storage,
  onProgress: (progress: VerifyProgress) => void = () => {},
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const run = new Verification(storage, onProgress, options);
  await onDisk(storage.dir, () => run.all());
  return run.report;
}

const MISSING_TIMEOUT_MS = 60_000;

/**
 * One run. The node may write at the same time: a version moves from `pending` to a record to `superseded`, and is looked up
 * in this order, so it cannot be missed. A missing file is a problem only if its record has not changed.
 */
class Verification {
  readonly report: VerifyReport = {
    tiles: 0,
    files: 0,
    bytes: 0,
    problemCount: 0,
    problems: [],
    orphanCount: 0,
    orphanBytes: 0,
    orphans: [],
  };
  private readonly dir: string;
  private readonly isOwn: NonNullable<VerifyOptions['isOwn']>;
  private readonly objects: ObjectVerifier | undefined;
  private scene: { record: SceneRecord; versions: Map<string, string> } | undefined;

  constructor(
    private readonly storage: Storage,
    private readonly onProgress: (progress: VerifyProgress) => void,
    { isOwn = () => true, missingTimeoutMs = MISSING_TIMEOUT_MS }: VerifyOptions,
  ) {
    this.dir = storage.dir;
    this.isOwn = isOwn;
    const { sharedStore } = storage;
    if (sharedStore)
      this.objects = new ObjectVerifier(
        this.dir,
        sharedStore,
        (kind, what) => this.problem(kind, what),
        missingTimeoutMs,
      );
  }

  async all(): Promise<void> {
    const { catalogue } = this.storage;
    const { scenes, tiles, layouts, models } = catalogue;
    const onlyRead = [
      catalogue.collections,
      layouts,
      ...catalogue.jobs.tables,
      catalogue.pending,
      catalogue.superseded,
      catalogue.commits,
      catalogue.textures,
      catalogue.clusterings,
    ];
    for (const table of onlyRead) await this.each<unknown>(table, async () => {});
    await this.each(tiles, (tile) => this.tile(tile));
    for (const digest of catalogue.tileLayouts.missing)
      if (!(await layouts.has(digest))) this.problem('missing', `layouts ${digest}`);
    await this.verifyNoExtraRows();
    await this.each(scenes, (scene) => this.verifySceneTiles(scene));
    await this.each(models, async (model) => {
      const record = `models ${model.id}`;
      for (const version of versionsOf(model)) {
        const isCurrent = async () => {
          const now = await this.readIntact(models, model.id);
          return now !== undefined && versionsOf(now).some((one) => one.version === version.version);
        };
        for (const file of filesOf(version)) await this.file({ ...file, record, isCurrent });
      }
    });
    if (this.objects) {
      await this.objects.end();
      this.report.files = this.objects.files;
      this.report.bytes = this.objects.bytes;
      // The local files are a cache, which may have files of other nodes' tiles.
      return;
    }
    await this.walk('tiles', VERSION_DEPTH.tiles);
    await this.walk('models', VERSION_DEPTH.models);
  }

  private async each<T>(table: Table<T>, check: (record: T) => Promise<void>): Promise<void> {
    for await (const { key, record, error } of table.scan()) {
      if (error) this.problem('corrupt-record', `${table.name} ${key}`);
      else await check(record);
    }
  }

  private async tile(tile: TileRecord): Promise<void> {
    const isCurrent = async () => (await this.readIntactTile(tile.id))?.version === tile.version;
    const record = `tiles ${tile.id}`;
    for (const file of filesOf(tile)) await this.file({ ...file, record, isCurrent });
    if (tile.source === 'raw' && !(await this.sceneNames(tile)) && (await isCurrent()))
      this.problem('no-scene', `tiles ${tile.id}`);
    if (!this.storage.index.agrees(tile)) await this.verifyIndexed(tile.id);
    this.report.tiles++;
    const { tiles, files, bytes } = this.report;
    this.onProgress({ tiles, files, bytes });
  }

  /** Reports a tile if the index differs, unless it differed only because a commit was in progress. */
  private async verifyIndexed(id: string): Promise<void> {
    if (!(await this.storage.isIndexConsistent(id))) this.problem('index', `tiles ${id}`);
  }

  /** Looks for tiles of the index that have no record. */
  private async verifyNoExtraRows(): Promise<void> {
    const { index, catalogue } = this.storage;
    for (let after: Cursor | undefined; ; ) {
      const page = index.query({ after, limit: INDEX_PAGE_TILES, count: false });
      const records = await catalogue.tiles.scanMany(page.ids);
      for (const [i, id] of page.ids.entries()) if (!records[i]) await this.verifyIndexed(id);
      if (!page.next) return;
      after = page.next;
    }
  }

  /** True if the tile's scene names it. Tiles arrive in the order of their ids, so each scene is read about once. */
  private async sceneNames(tile: TileRecord): Promise<boolean> {
    const { collection, scene, geocode, version } = tile;
    const isNamed = () => this.scene?.versions.get(geocode) === version;
    const cached = this.scene?.record;
    if (cached?.id === scene && cached.collection === collection && isNamed()) return true;
    const record = await this.readIntact(this.storage.catalogue.scenes, sceneKey(collection, scene));
    this.scene = record && { record, versions: tileVersions(record) };
    return isNamed();
  }

  private async verifySceneTiles(scene: SceneRecord): Promise<void> {
    const { catalogue } = this.storage;
    const grid = (await this.readIntact(catalogue.collections, scene.collection))?.grid;
    if (!grid) return this.problem('missing', `collections ${scene.collection}`);
    for (const [geocode, version] of tileVersions(scene)) {
      if (!this.isOwn({ grid, geocode })) continue;
      const id = tileId(scene.collection, scene.id, grid, geocode);
      if ((await this.readIntactTile(id))?.version === version) continue;
      const now = await this.readIntact(catalogue.scenes, sceneKey(scene.collection, scene.id));
      if (now?.version === scene.version && this.isOwn({ grid, geocode }))
        this.problem('missing', `tiles ${id}`);
    }
  }

  private async file(file: ExpectedFile): Promise<void> {
    if (this.objects) return this.objects.check(file);
    const sum = await orIfMissing(checksumOf(fileChunks(join(this.dir, file.path))), undefined);
    if (!sum) {
      if (await file.isCurrent()) this.problem('missing', file.path);
      return;
    }
    this.report.files++;
    this.report.bytes += sum.bytes;
    if (sum.bytes !== file.bytes) this.problem('size', file.path);
    else if (sum.crc32 !== file.crc32) this.problem('checksum', file.path);
  }

  /** Looks for files and folders that no record names, `depth` folders above the versions. Ignores empty folders. */
  private async walk(path: string, depth: number): Promise<void> {
    for await (const { name, isFolder } of this.entries(path)) {
      const child = `${path}/${name}`;
      if (!isFolder) await this.orphan(child);
      else if (depth > 1) await this.walk(child, depth - 1);
      else await this.version(child);
    }
  }

  private async version(path: string): Promise<void> {
    const { pending, superseded } = this.storage.catalogue;
    const staging = stagingPath('');
    if (await pending.has(path.endsWith(staging) ? path.slice(0, -staging.length) : path)) return;
    const files = await this.namedFiles(path);
    if (!files) {
      if (!(await superseded.has(path))) await this.orphan(path);
      return;
    }
    for await (const { name } of this.entries(path))
      if (!files.has(`${path}/${name}`)) await this.orphan(`${path}/${name}`);
  }

  /** The entries of a folder; none if garbage collection has removed it in the meantime. */
  private async *entries(path: string): AsyncGenerator<{ name: string; isFolder: boolean }> {
    try {
      for await (const entry of await opendir(join(this.dir, path)))
        yield { name: entry.name, isFolder: entry.isDirectory() };
    } catch (error) {
      if (!isMissingFile(error)) throw error;
    }
  }

  /** Counts a file or folder that no record names, unless garbage collection or an undone write has removed it. */
  private async orphan(path: string): Promise<void> {
    const bytes = await this.size(path);
    if (bytes === undefined) return;
    this.report.orphanCount++;
    this.report.orphanBytes += bytes;
    if (this.report.orphans.length < MAX_LISTED) this.report.orphans.push({ path, bytes });
  }

  /** Bytes of a file or of all files below a folder; undefined if it is missing. */
  private async size(path: string): Promise<number | undefined> {
    const info = await orIfMissing(lstat(join(this.dir, path)), undefined);
    if (!info?.isDirectory()) return info?.size;
    let bytes = 0;
    for await (const { name } of this.entries(path)) bytes += (await this.size(`${path}/${name}`)) ?? 0;
    return bytes;
  }

  /** The files in the record that names this version folder; undefined if no record does. */
  private async namedFiles(path: string): Promise<Set<string> | undefined> {
    const names = path.split('/');
    if (names[0] === 'tiles') {
      const tile = await this.readIntactTile(tileOfFolder(path));
      return tile && tileFolder(tile) === path ? pathsOf(tile) : undefined;
    }
    const [, model, collection, gridName, geocode] = names;
    const grid = grids.find(({ name }) => name === gridName);
    if (!grid) return undefined;
    const id = modelId(model, collection, grid.name, geocode);
    const record = await this.readIntact(this.storage.catalogue.models, id);
    const version = record && versionsOf(record).find((one) => modelFolder(one) === path);
    return version && pathsOf(version);
  }

  private readIntactTile(id: string): Promise<TileRecord | undefined> {
    return this.readIntact(this.storage.catalogue.tiles, id);
  }

  /** A record; undefined if it is missing or damaged. A damaged one is reported when its table is read. */
  private async readIntact<T>(table: Table<T>, key: string): Promise<T | undefined> {
    const [scanned] = await table.scanMany([key]);
    return scanned?.record;
  }

  private problem(kind: Problem['kind'], what: string): void {
    this.report.problemCount++;
    if (this.report.problems.length < MAX_LISTED) this.report.problems.push({ kind, what });
  }
}

const pathsOf = (record: TileRecord | ModelVersionRecord) => new Set(filesOf(record).map(({ path }) => path));
