/**
 * Immutable objects with unique names in a place that all nodes of a cluster can reach, a folder or a bucket of S3; their bytes on the way
 * there and back.
 */

import { once } from 'node:events';
import { constants, copyFile, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import type { ClusterMetrics } from '../../metrics/index.js';
import { asStorageError } from '../disk.js';
import { storeCorrupt } from '../errors.js';
import { type Chunks, fileChunks } from '../files.js';

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
   * detected only at the end: then discard what was read. A stream that is not read may hold a file open: destroy it.
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

/** The bytes to put. Errors of the local disk become TW_STORAGE_ errors, which callers can tell from errors of the store. */
export async function* contentChunks(content: Content, signal?: AbortSignal): Chunks {
  if (content instanceof Uint8Array) yield content;
  else
    try {
      for await (const chunk of fileChunks(content.file)) {
        signal?.throwIfAborted();
        yield chunk;
      }
    } catch (error) {
      throw asStorageError(error, dirname(content.file));
    }
}

/** Lets the system copy, and share blocks if the file system can, so that no bytes pass through this process. */
const COPY_FLAGS = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE;

/**
 * Copies a file to a new file. `chunks` reads the source; it is used only if the system cannot copy the file, as on mounts
 * without modes. Errors of `chunks` belong to the source, all others to the new file.
 */
export async function copyFileExclusive(source: string, path: string, chunks: () => Chunks): Promise<void> {
  try {
    await copyFile(source, path, COPY_FLAGS);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    await rm(path, { force: true });
    await writeChunks(path, chunks());
  }
}

/** Writes chunks to a new file. */
export async function writeChunks(path: string, chunks: Chunks): Promise<void> {
  const handle = await open(path, 'wx');
  try {
    for await (const chunk of chunks) await handle.writeFile(chunk);
  } finally {
    await handle.close();
  }
}

/** Throws TW_STORE_CORRUPT if the CRC-32 of the bytes differs from the expected one. */
export function requireChecksum(
  actual: number,
  expected: number | undefined,
  name: string,
  url: string,
): void {
  if (expected === undefined || actual === expected) return;
  const hex = (crc: number) => crc.toString(16).padStart(8, '0');
  throw storeCorrupt(name, url, `its checksum is ${hex(actual)}, but ${hex(expected)} was written`);
}

/** Passes chunks on as they arrive, and verifies their checksum at the end. */
export async function* withChecksum(
  chunks: Chunks,
  expected: ReadOptions,
  name: string,
  url: string,
): Chunks {
  let crc = 0;
  for await (const chunk of chunks) {
    expected.signal?.throwIfAborted();
    if (expected.crc32 !== undefined) crc = crc32(chunk, crc);
    yield chunk;
  }
  requireChecksum(crc, expected.crc32, name, url);
}

export async function concatChunks(chunks: Chunks): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all.length === 1 ? Buffer.from(all[0].buffer, all[0].byteOffset, all[0].length) : Buffer.concat(all);
}

/** A stream of chunks. It resolves when the first chunk has arrived, or the stream is known to be empty. */
export async function streamOf(chunks: Chunks): Promise<Readable> {
  const stream = Readable.from(chunks, { objectMode: false });
  await once(stream, 'readable');
  return stream;
}

const OPERATIONS = {
  put: 'put',
  get: 'get',
  stream: 'stream',
  copyTo: 'copy',
  head: 'head',
  delete: 'delete',
} as const;

/** An object store whose calls are measured: streams until they are open, lists until their first objects. */
export function measuredStore(store: ObjectStore, calls: ClusterMetrics['store']): ObjectStore {
  return Object.assign(calls.measured(store, OPERATIONS), {
    async *list(prefix: string, options?: Cancellable) {
      const objects = store.list(prefix, options)[Symbol.asyncIterator]();
      try {
        let next = await calls.measure('list', () => objects.next(), options?.signal);
        for (; !next.done; next = await objects.next()) yield next.value;
      } finally {
        await objects.return?.();
      }
    },
  });
}
