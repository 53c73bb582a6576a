/** Immutable objects with unique names in a place that all nodes of a cluster can reach: a folder, or a bucket of S3. */
import type { Readable } from 'node:stream';

/** Bytes in memory, or a file on local disk, which is streamed if it is large. */
export type Content = Uint8Array | { file: string };

export interface Cancellable {
  /** The call rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface PutOptions extends Cancellable {
  /** CRC-32 of the content by its record. If it differs, `put` throws TW_STORE_CORRUPT and writes nothing. */
  crc32?: number;
  /**
   * If several writers put the name at the same time, one wins and the others get TW_STORE_EXISTS. A store that cannot do this (a mount
   * without hard links, an S3 server without conditional writes) keeps the last write. Only for small objects in memory.
   */
  ifAbsent?: boolean;
}

export interface ReadOptions extends Cancellable {
  /** First byte, 0 by default. Behind the end of the object there are no bytes, as in a file. */
  offset?: number;
  /** Up to the end by default. */
  length?: number;
  /** CRC-32 of the bytes by their record. If it differs, reading throws TW_STORE_CORRUPT. */
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
 * Names consist of letters, digits, `.`, `_`, `-` and `+`, begin with a letter or digit, and may have parts separated by `/`;
 * others are refused with TW_STORAGE_BAD_NAME. No name may be a folder of another. An object is complete or absent, and durable
 * when its `put` has resolved. If a store is full, refuses access or cannot be reached, calls throw a TW_STORE_ error after
 * retries that can help.
 */
export interface ObjectStore {
  /** The URL that it was opened with. */
  readonly url: string;
  /**
   * Writes an object. If the name exists with the same content, this does nothing; with other content it throws
   * TW_STORE_EXISTS. Without `ifAbsent`, two writers of one name at the same time are not detected: names must be unique.
   */
  put(name: string, content: Content, options?: PutOptions): Promise<void>;
  /** The bytes of an object, or a range of them. Throws TW_STORE_NOT_FOUND. */
  get(name: string, options?: ReadOptions): Promise<Buffer>;
  /**
   * Like `get`, for large objects. Errors before the first byte are thrown, later ones end the stream. A wrong checksum is
   * detected only at the end: then discard what was read. A stream that is not read holds a connection: destroy it.
   */
  stream(name: string, options?: ReadOptions): Promise<Readable>;
  /**
   * Copies an object into a new file of the local disk, which is not synced. After an error, part of the file may exist. Throws
   * TW_STORE_NOT_FOUND, and the TW_STORAGE_ errors of the disk.
   */
  copyTo(name: string, file: string, options?: CopyOptions): Promise<void>;
  /** Size and last change of an object; undefined if it does not exist. */
  head(name: string, options?: Cancellable): Promise<ObjectInfo | undefined>;
  /** The objects whose names begin with `prefix`, in the order of the bytes of their names. */
  list(prefix: string, options?: Cancellable): AsyncIterable<ObjectInfo>;
  /** Removes objects; missing ones are ignored. */
  delete(names: string[], options?: Cancellable): Promise<void>;
  /** Name for GDAL: a path, or `/vsis3/<bucket>/<key>`. */
  location(name: string): string;
  /** Closes connections. */
  close(): void;
}
