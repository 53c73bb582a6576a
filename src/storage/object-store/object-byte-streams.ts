/** Bytes on their way to and from an object store. */
import { once } from 'node:events';
import { constants, copyFile, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { storeCorrupt } from '../errors.js';
import { asStorageError, type Chunks, fileChunks } from '../files/index.js';
import type { Content, ReadOptions } from './object-store.js';

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
