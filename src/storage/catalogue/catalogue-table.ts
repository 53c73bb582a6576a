/** Typed tables of records in LevelDB. */
import type { Level } from 'level';
import { TilewrightError } from '../../errors.js';
import { asStorageError, onDisk } from '../files/index.js';
import { decodeRecord, encodeRecord } from './catalogue-record-codec.js';
import type { LevelChange } from './catalogue-writer.js';

/** One put or delete for `Catalogue.write`. */
export type CatalogueChange = LevelChange<Buffer>;

/** A range of the keys of a table: those that begin with `prefix`, between `after` and `before`, ascending or descending. */
export interface TableRange {
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
