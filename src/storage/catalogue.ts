/** The catalogue: typed tables of small records over LevelDB, and the only writer of it. */
import { crc32 } from 'node:zlib';
import type { Level } from 'level';
import { TilewrightError } from '../errors.js';
import { asStorageError, onDisk } from './disk.js';
import { storageCorrupt } from './errors.js';
import { type LevelChange, LevelWriter, openLevel } from './level.js';
import {
  type ClusteringRecord,
  type CollectionRecord,
  JOB_DETAILS,
  type JobDetails,
  type JobRecord,
  type JobSummary,
  jobSummaryOf,
  type LogRecord,
  type ModelRecord,
  type ReplicaRecord,
  type RequestRecord,
  type SceneRecord,
  type TextureRecord,
  type TileRecord,
} from './records.js';
import { type TileSchema, TileSchemas } from './tile-schema.js';

/**
 * Encodes a record for the disk: the CRC-32 of its key and its JSON (4 bytes, big endian), then the JSON as UTF-8. LevelDB returns flipped
 * bytes without an error, so each record has its own checksum. It includes the key, because a flipped byte in a key would put an intact
 * record in the place of another.
 */
export function encodeRecord(key: string, record: unknown): Buffer {
  const json = JSON.stringify(record);
  const bytes = Buffer.allocUnsafe(4 + Buffer.byteLength(json));
  bytes.write(json, 4, 'utf8');
  bytes.writeUInt32BE(crc32(bytes.subarray(4), crc32(key)), 0);
  return bytes;
}

/** `where` names the table in the error. Throws TW_STORAGE_CORRUPT. */
export function decodeRecord(where: string, key: string, bytes: Buffer): unknown {
  const json = bytes.subarray(4);
  if (bytes.length < 4 || bytes.readUInt32BE(0) !== crc32(json, crc32(key)))
    throw storageCorrupt(`record ${JSON.stringify(key)}`, `table ${where} of the catalogue`);
  return JSON.parse(json.toString('utf8'));
}

/** One put or delete for `Catalogue.write`. */
export type CatalogueChange = LevelChange<Buffer>;

/** A range of the keys of a table: those that begin with `prefix`, between `after` and `before`, ascending or descending. */
interface TableRange {
  prefix?: string;
  after?: string | undefined;
  before?: string | undefined;
  reverse?: boolean;
  limit?: number;
}

export type ScanResult<T> =
  | { key: string; record: T; error?: undefined }
  | { key: string; record?: undefined; error: TilewrightError };

/** Converts records that are stored in another form. */
interface ValueCodec<T> {
  encode(record: T): unknown;
  /** `stored` was made by `encode`. Throws TW_STORAGE_CORRUPT. */
  decode(key: string, stored: unknown): T;
}

const prefixOf = (table: string) => `!${table}!`;

/** The tables whose records are counted. */
const COUNTED_TABLES = ['collections', 'scenes', 'models'] as const;

/**
 * Records of one kind, ordered by their keys. Keys are ASCII; on disk they are those of level's sublevel `name`. Every
 * read verifies the record's CRC and throws TW_STORAGE_CORRUPT.
 */
export class Table<T> {
  private readonly prefix: string;

  constructor(
    readonly name: string,
    private readonly db: Level<string, Buffer>,
    private readonly codec?: ValueCodec<T>,
  ) {
    this.prefix = prefixOf(name);
  }

  /** The change that stores a record. */
  set(key: string, record: T): CatalogueChange {
    const stored = this.codec ? this.codec.encode(record) : record;
    return { type: 'put', key: this.prefix + key, value: encodeRecord(key, stored) };
  }

  /** The change that deletes a record. */
  delete(key: string): CatalogueChange {
    return { type: 'del', key: this.prefix + key };
  }

  async get(key: string): Promise<T | undefined> {
    return (await this.getMany([key]))[0];
  }

  /** Records in the order of `keys`; undefined for each missing one. */
  getMany(keys: string[]): Promise<(T | undefined)[]> {
    return this.onDisk(async () => {
      const values: (Buffer | undefined)[] = await this.db.getMany(keys.map((key) => this.prefix + key));
      return values.map((value, i) => value && this.decode(keys[i], value));
    });
  }

  /** Like `getMany`, but returns the errors of damaged records. */
  scanMany(keys: string[]): Promise<(ScanResult<T> | undefined)[]> {
    return this.onDisk(async () => {
      const values: (Buffer | undefined)[] = await this.db.getMany(keys.map((key) => this.prefix + key));
      return values.map((value, i) => value && this.toScanResult(keys[i], value));
    });
  }

  has(key: string): Promise<boolean> {
    return this.onDisk(() => this.db.has(this.prefix + key));
  }

  async isEmpty(): Promise<boolean> {
    // Leaving the loop closes the iterator. An open iterator keeps its memory and a snapshot of the entire database.
    for await (const _ of this.keys({ limit: 1 })) return false;
    return true;
  }

  async *keys(range: TableRange = {}): AsyncGenerator<string> {
    try {
      for await (const key of this.db.keys(this.levelRange(range))) yield key.slice(this.prefix.length);
    } catch (error) {
      throw asStorageError(error, this.db.location);
    }
  }

  async *values(range: TableRange = {}): AsyncGenerator<T> {
    for await (const scanned of this.scan(range)) {
      if (scanned.error) throw scanned.error;
      yield scanned.record;
    }
  }

  /** Like `values`, but continues after a damaged record. */
  async *scan(range: TableRange = {}): AsyncGenerator<ScanResult<T>> {
    try {
      for await (const [key, value] of this.db.iterator(this.levelRange(range)))
        yield this.toScanResult(key.slice(this.prefix.length), value);
    } catch (error) {
      throw asStorageError(error, this.db.location);
    }
  }

  private decode(key: string, value: Buffer): T {
    const stored = decodeRecord(this.name, key, value);
    return this.codec ? this.codec.decode(key, stored) : (stored as T);
  }

  private toScanResult(key: string, value: Buffer): ScanResult<T> {
    try {
      return { key, record: this.decode(key, value) };
    } catch (error) {
      if (error instanceof TilewrightError) return { key, error };
      throw error;
    }
  }

  private levelRange({ prefix = '', after, before, reverse = false, limit = -1 }: TableRange) {
    return {
      ...(after === undefined ? { gte: this.prefix + prefix } : { gt: this.prefix + after }),
      lt: this.prefix + (before ?? `${prefix}\x7f`),
      reverse,
      limit,
    };
  }

  private onDisk<R>(work: () => Promise<R>): Promise<R> {
    return onDisk(this.db.location, work);
  }
}

/** The log entry of a commit that changed tiles. */
export interface IndexLogRecord {
  /** Random. Distinguishes commits with the same number after the folder was restored from a copy. */
  tag: string;
  /** Ids of the tiles that were added, changed or removed. */
  tiles: string[];
}

/**
 * The records of jobs, in two tables with the same keys: summaries, which change with the progress and which lists read, and details,
 * which can be megabytes.
 */
export class JobTable {
  private readonly summaries: Table<JobSummary>;
  private readonly details: Table<JobDetails>;
  /** Both tables, for reading everything. */
  readonly tables: readonly Table<unknown>[];

  constructor(db: Level<string, Buffer>) {
    this.summaries = new Table('jobs', db);
    this.details = new Table('jobDetails', db);
    this.tables = [this.summaries as Table<unknown>, this.details as Table<unknown>];
  }

  /** The changes that store a record. Details that are the same objects as those of `before`, which is stored, are not written. */
  set(record: JobRecord, before?: JobRecord): CatalogueChange[] {
    const { id } = record;
    const put = this.summaries.set(id, jobSummaryOf(record));
    if (before && JOB_DETAILS.every((detail) => record[detail] === before[detail])) return [put];
    const details = Object.fromEntries(JOB_DETAILS.map((detail) => [detail, record[detail]])) as JobDetails;
    return [put, this.details.set(id, details)];
  }

  /** The changes that delete a record. */
  delete(id: string): CatalogueChange[] {
    return [this.summaries.delete(id), this.details.delete(id)];
  }

  /** Throws TW_STORAGE_CORRUPT, also if the details are missing. */
  async get(id: string): Promise<JobRecord | undefined> {
    // An end that is written between both reads then has its results.
    const summary = await this.summaries.get(id);
    if (!summary) return undefined;
    const details = await this.details.get(id);
    const { hasResults: _, ...rest } = summary;
    if (details) return { ...rest, ...details };
    // Otherwise the job was removed between both reads.
    if (await this.has(id)) throw storageCorrupt(`details of job ${id}`, 'table jobDetails of the catalogue');
    return undefined;
  }

  has(id: string): Promise<boolean> {
    return this.summaries.has(id);
  }

  keys(): AsyncGenerator<string> {
    return this.summaries.keys();
  }

  scan(range?: TableRange): AsyncGenerator<ScanResult<JobSummary>> {
    return this.summaries.scan(range);
  }
}

/** Schemas that are kept without looking for their tiles. */
const MAX_UNCHECKED_SCHEMAS = 1000;

/**
 * | table | key |
 * |---|---|
 * | collections | collection id |
 * | scenes | `<collection>/<scene>` |
 * | tiles | tile id, which begins with `<collection>_<scene>_` |
 * | layouts | digest of the common part of tile records (`TileSchemas`) |
 * | models | model id |
 * | textures | `<collection>/<geocode>` |
 * | clusterings | collection id |
 * | jobs, jobDetails | job id |
 * | logs | `<job>/<number of the line>`, ten digits |
 * | requests | SHA-256 of the key that the client gave to the request |
 * | pending | folder of a tile or model version that is being written, relative to the data folder |
 * | superseded | folder of a version that no record names any more |
 * | replica | `state`: the part of a cluster that the folder has (`ReplicaRecord`) |
 * | commits | number of a commit that changed tiles, 12 digits; commits that the index's snapshot contains are dropped |
 *
 * Invariants: a synced `write` is completely on disk when its promise resolves. After a failed `write` the catalogue accepts no
 * others (see `LevelWriter`), and only the next open shows whether the failed one was made.
 */
export class Catalogue {
  readonly collections: Table<CollectionRecord>;
  readonly scenes: Table<SceneRecord>;
  readonly tiles: Table<TileRecord>;
  readonly layouts: Table<TileSchema>;
  readonly models: Table<ModelRecord>;
  readonly textures: Table<TextureRecord>;
  readonly clusterings: Table<ClusteringRecord>;
  readonly jobs: JobTable;
  readonly logs: Table<LogRecord>;
  readonly requests: Table<RequestRecord>;
  readonly pending: Table<{ since: number }>;
  readonly superseded: Table<{ since: number }>;
  readonly replica: Table<ReplicaRecord>;
  readonly commits: Table<IndexLogRecord>;
  readonly tileLayouts = new TileSchemas();
  /** Number of schemas after `dropUnusedSchemas`. */
  private usedSchemas = 0;
  private readonly writer: LevelWriter<Buffer>;

  private constructor(
    readonly dir: string,
    db: Level<string, Buffer>,
  ) {
    this.writer = new LevelWriter(db, COUNTED_TABLES.map(prefixOf));
    const table = <T>(name: string) => new Table<T>(name, db);
    this.collections = table('collections');
    this.scenes = table('scenes');
    this.tiles = new Table('tiles', db, this.tileLayouts);
    this.layouts = table('layouts');
    this.models = table('models');
    this.textures = table('textures');
    this.clusterings = table('clusterings');
    this.jobs = new JobTable(db);
    this.logs = table('logs');
    this.requests = table('requests');
    this.pending = table('pending');
    this.superseded = table('superseded');
    this.replica = table('replica');
    this.commits = table('commits');
  }

  /**
   * With `create`, a missing catalogue is created; without it, a missing one is an error. Throws the errors of `openLevel`.
   */
  static async open(dir: string, create = true, marker?: string): Promise<Catalogue> {
    const options = { valueEncoding: 'buffer', createIfMissing: create };
    const db = await openLevel<Buffer>(dir, options, marker);
    const catalogue = new Catalogue(dir, db);
    try {
      // Damaged ones are reported when their tiles are read, and by `verify`.
      for await (const { key, record } of catalogue.layouts.scan())
        if (record) catalogue.tileLayouts.add(key, record);
      return catalogue;
    } catch (error) {
      await catalogue.close();
      throw error;
    }
  }

  /**
   * Writes all changes or none, in one batch with the schemas that their tiles need. `sync` is false only if another copy
   * survives a power cut.
   */
  async write(changes: CatalogueChange[], sync = true): Promise<void> {
    const layouts = this.tileLayouts.takeUnwritten();
    const puts = layouts.map(([key, layout]) => this.layouts.set(key, layout));
    await this.writer.write([...puts, ...changes], sync);
    this.tileLayouts.markWritten(layouts);
  }

  /**
   * Removes the schemas that no tile names any more, if there are more than `most`. Reads all tiles. The first of two calls only begins to
   * note which schemas are named; every write that began before must have ended at the second.
   */
  async dropUnusedSchemas(
    isStopping: () => boolean,
    most = Math.max(MAX_UNCHECKED_SCHEMAS, 2 * this.usedSchemas),
  ): Promise<void> {
    const { tileLayouts } = this;
    if (tileLayouts.size <= most) return;
    if (!tileLayouts.notesUse) return tileLayouts.noteUse();
    for await (const _ of this.tiles.scan()) if (isStopping()) return;
    // Nothing may be awaited between these two, so that a schema that is used again is written after its removal.
    const unused = tileLayouts.dropUnused();
    const written = this.write(unused.map((digest) => this.layouts.delete(digest)));
    this.usedSchemas = tileLayouts.size;
    await written;
  }

  /** Numbers of records. The first call reads their keys; later ones answer from memory. */
  async counts(): Promise<Record<(typeof COUNTED_TABLES)[number], number>> {
    const [collections = 0, scenes = 0, models = 0] = await this.writer.counts();
    return { collections, scenes, models };
  }

  /** Error of a failed write, after which only the next open can tell what is on disk; undefined if none has failed. */
  get writeError(): unknown {
    return this.writer.writeError;
  }

  close(): Promise<void> {
    return this.writer.close();
  }
}

export function sceneKey(collection: string, scene: string): string {
  return `${collection}/${scene}`;
}
