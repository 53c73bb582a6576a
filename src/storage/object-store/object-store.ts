/** Immutable objects with unique names in a place that all nodes of a cluster reach: a folder, or a bucket of S3. */
import type { Readable } from 'node:stream';

/** Bytes in memory, or a file on local disk, which is streamed where it is large. */
export type Content = Uint8Array | { file: string };

export interface Cancellable {
  /** What it was aborted with is thrown. */
  signal?: AbortSignal;
}

export interface PutOptions extends Cancellable {
  /** What the content sums to by the record of it: TW_STORE_CORRUPT where it does not, and nothing is written. */
  crc32?: number;
  /**
   * Of several writers of the name at one time one wins, and the others get TW_STORE_EXISTS. A store that cannot do that (a mount without hard
   * links, a server of S3 without conditional writes) keeps what was written last. For small objects, in memory.
   */
  ifAbsent?: boolean;
}

export interface ReadOptions extends Cancellable {
  /** First byte; 0 by default. Beyond the end of the object there are no bytes, as in a file. */
  offset?: number;
  /** All to the end by default. */
  length?: number;
  /** What the bytes read sum to by the record of them: TW_STORE_CORRUPT where they do not. */
  crc32?: number;
}

export type CopyOptions = Pick<ReadOptions, 'crc32' | 'signal'>;

export interface ObjectInfo {
  name: string;
  bytes: number;
  /** Last change by the clock of the store, ms since 1970. */
  modified: number;
}

/**
 * Names are words of letters, digits, `.`, `_`, `-` and `+`, which begin with a letter or digit, with `/` between:
 * TW_STORAGE_BAD_NAME. No name may be a folder of another. An object is there whole or not at all, and durable when its
 * `put` has ended. A store that is full, refuses access or cannot be reached says so with a TW_STORE_ error, after the
 * attempts that can help.
 */
export interface ObjectStore {
  /** Where it is, as it was opened. */
  readonly url: string;
  /**
   * Writes an object. A name that is there with the same content is fine; with other content it is TW_STORE_EXISTS. Two
   * writers of one name at the same time are not told apart but by `ifAbsent`: names must be unique.
   */
  put(name: string, content: Content, options?: PutOptions): Promise<void>;
  /** The bytes of an object, or a range of them. Throws TW_STORE_NOT_FOUND. */
  get(name: string, options?: ReadOptions): Promise<Buffer>;
  /**
   * The same for large objects. Errors that show before the first byte are thrown, later ones end the stream; a wrong
   * checksum shows at the end only, and what was read is to be thrown away then. A stream that is not read holds a
   * connection: destroy it.
   */
  stream(name: string, options?: ReadOptions): Promise<Readable>;
  /**
   * Copies an object into a new file of the local disk, which is not synced. After an error some of it may be there. Throws
   * TW_STORE_NOT_FOUND, and the TW_STORAGE_ errors of the disk.
   */
  copyTo(name: string, file: string, options?: CopyOptions): Promise<void>;
  /** Size and last change of an object; undefined where there is none. */
  head(name: string, options?: Cancellable): Promise<ObjectInfo | undefined>;
  /** The objects whose names begin with `prefix`, in the order of the bytes of their names. */
  list(prefix: string, options?: Cancellable): AsyncIterable<ObjectInfo>;
  /** Removes objects; those that are not there are no error. */
  delete(names: string[], options?: Cancellable): Promise<void>;
  /** What GDAL opens: a path, or `/vsis3/<bucket>/<key>`. */
  location(name: string): string;
  /** Ends connections. */
  close(): void;
}
