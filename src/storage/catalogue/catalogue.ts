/** The catalogue: typed tables of small records over LevelDB. */
import { Level } from 'level';
import { TilewrightError } from '../../errors.js';
import { asStorageError, onDisk } from '../errors.js';
import { type LevelChange, LevelWriter } from './level-writer.js';
import { decodeRecord, encodeRecord } from './record-codec.js';
import type {
  ClusteringRecord,
  CollectionRecord,
  JobRecord,
  LogRecord,
  ModelRecord,
  ReplicaRecord,
  RequestRecord,
  SceneRecord,
  TextureRecord,
  TileRecord,
} from './records.js';
import { type TileSchema, TileSchemas } from './tile-schema.js';

/** One put or delete, to be handed to `Catalogue.write` together with others. */
export type CatalogueChange = LevelChange<Buffer>;

/** Which keys of a table: those that begin with `prefix`, between `after` and `before`, in their order or reversed. */
export interface TableRange {
  prefix?: string;
  after?: string | undefined;
  before?: string | undefined;
  reverse?: boolean;
  limit?: number;
}

/** A commit that has changed tiles. */
export interface IndexLogRecord {
  /** Random: tells it from another commit that has its number after the folder was restored from a copy. */
  tag: string;
  /** The ids of the tiles that it added, changed or removed. */
  tiles: string[];
}

export type ScanResult<T> =
  | { key: string; record: T; error?: undefined }
  | { key: string; record?: undefined; error: TilewrightError };

/** How records of a kind lie on disk where that is not as they are. */
interface ValueCodec<T> {
  encode(record: T): unknown;
  /** Gets what `pack` has made. Throws TW_STORAGE_CORRUPT. */
  decode(key: string, stored: unknown): T;
}

/**
 * Records of one kind, ordered by their keys. Keys are ASCII; on disk they are those of level's sublevel `name`. Every
 * read checks the record's CRC: TW_STORAGE_CORRUPT.
 */
export class Table<T> {
  private readonly prefix: string;

  constructor(
    readonly name: string,
    private readonly db: Level<string, Buffer>,
    private readonly codec?: ValueCodec<T>,
  ) {
    this.prefix = `!${name}!`;
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

  /** In the order of `keys`; undefined where there is no record. */
  getMany(keys: string[]): Promise<(T | undefined)[]> {
    return this.onDisk(async () => {
      const values: (Buffer | undefined)[] = await this.db.getMany(keys.map((key) => this.prefix + key));
      return values.map((value, i) => value && this.decode(keys[i], value));
    });
  }

  /** Like `getMany`, but goes on after a damaged record. */
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
    // Leaving the loop closes the iterator. One that is left open keeps its memory and a snapshot of the whole database.
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

  /** Like `values`, but goes on after a damaged record. */
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

/**
 * | table | key |
 * |---|---|
 * | collections | collection id |
 * | scenes | `<collection>/<scene>` |
 * | tiles | tile id, which begins with `<collection>_<scene>_` |
 * | layouts | digest of what tile records have in common (`TileSchemas`) |
 * | models | model id |
 * | textures | `<collection>/<geocode>` |
 * | clusterings | collection id |
 * | jobs | job id |
 * | logs | `<job>/<number of the line>`, ten digits |
 * | requests | SHA-256 of the key that the client gave to the request |
 * | pending | folder of a tile or model version that is being written, relative to the data folder |
 * | superseded | folder of a version that no record names any more, and since when |
 * | replica | `state`: what the folder holds of a cluster (`ReplicaRecord`) |
 * | commits | number of a commit that has changed tiles, 12 digits; those that the index's snapshot holds are dropped |
 *
 * Invariants: a synced `write` is on disk as a whole when its promise resolves. After a failed `write` the catalogue accepts no
 * other (see `LevelWriter`), and only the next open shows whether the failed one was made.
 */
export class Catalogue {
  readonly collections: Table<CollectionRecord>;
  readonly scenes: Table<SceneRecord>;
  readonly tiles: Table<TileRecord>;
  readonly layouts: Table<TileSchema>;
  readonly models: Table<ModelRecord>;
  readonly textures: Table<TextureRecord>;
  readonly clusterings: Table<ClusteringRecord>;
  readonly jobs: Table<JobRecord>;
  readonly logs: Table<LogRecord>;
  readonly requests: Table<RequestRecord>;
  readonly pending: Table<{ since: number }>;
  readonly superseded: Table<{ since: number }>;
  readonly replica: Table<ReplicaRecord>;
  readonly commits: Table<IndexLogRecord>;
  readonly tileLayouts = new TileSchemas();
  private readonly writer: LevelWriter<Buffer>;

  private constructor(
    readonly dir: string,
    db: Level<string, Buffer>,
  ) {
    this.writer = new LevelWriter(db);
    const table = <T>(name: string) => new Table<T>(name, db);
    this.collections = table('collections');
    this.scenes = table('scenes');
    this.tiles = new Table('tiles', db, this.tileLayouts);
    this.layouts = table('layouts');
    this.models = table('models');
    this.textures = table('textures');
    this.clusterings = table('clusterings');
    this.jobs = table('jobs');
    this.logs = table('logs');
    this.requests = table('requests');
    this.pending = table('pending');
    this.superseded = table('superseded');
    this.replica = table('replica');
    this.commits = table('commits');
  }

  /**
   * `create` makes a new one; without it a catalogue that is gone is an error and not an empty one. Throws TW_STORAGE_LOCKED where
   * another process, or this one, has it open.
   */
  static async open(dir: string, create = true): Promise<Catalogue> {
    const db = new Level<string, Buffer>(dir, { valueEncoding: 'buffer', createIfMissing: create });
    await onDisk(dir, () => db.open());
    const catalogue = new Catalogue(dir, db);
    try {
      // Those that are damaged are found when their tiles are read, and by `verify`.
      for await (const { key, record } of catalogue.layouts.scan())
        if (record) catalogue.tileLayouts.add(key, record);
      return catalogue;
    } catch (error) {
      await catalogue.close();
      throw error;
    }
  }

  /**
   * All changes or none, in one batch, and with them the layouts of tiles among them. Where `sync` is false, what a power cut
   * may take back is there once more elsewhere.
   */
  async write(changes: CatalogueChange[], sync = true): Promise<void> {
    const layouts = this.tileLayouts.takeUnwritten();
    const puts = layouts.map(([key, layout]) => this.layouts.set(key, layout));
    await this.writer.write([...puts, ...changes], sync);
    this.tileLayouts.markWritten(layouts);
  }

  /** Error of a failed write; undefined if none has failed. After it, only the next open can tell what is on disk. */
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
