/** Bytes on their way into a store and out of it: chunks, and what they sum to. */
import { once } from 'node:events';
import { constants, copyFile, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { asStorageError, storeCorrupt } from '../errors.js';
import type { Content, ReadOptions } from './object-store.js';

export type Chunks = AsyncGenerator<Uint8Array, void>;

export interface ContentSum {
  bytes: number;
  crc32: number;
}

const CHUNK_BYTES = 1 << 20;

/** The bytes of a file from `offset` on, at most `length`. */
export async function* fileChunks(path: string, offset = 0, length = Number.POSITIVE_INFINITY): Chunks {
  const handle = await open(path, 'r');
  try {
    const end = Math.min((await handle.stat()).size, offset + length);
    for (let at = offset; at < end; ) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - at));
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/** The bytes that are to be put. Errors of the local disk are TW_STORAGE_ errors, so that they are not taken for the store's. */
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

/** One call of the system where it can: no bytes come through this process, and none are written where file systems share blocks. */
const COPY_FLAGS = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE;

/**
 * Makes a new file of another one, whose `chunks` are read only where the system cannot copy it, as mounts that know no modes. Errors of
 * `chunks` are those of the source, all others are of the new file.
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

/** Makes a new file of chunks. */
export async function writeChunks(path: string, chunks: Chunks): Promise<void> {
  const handle = await open(path, 'wx');
  try {
    for await (const chunk of chunks) await handle.writeFile(chunk);
  } finally {
    await handle.close();
  }
}

/** What chunks sum to; each is also given to `use`. */
export async function checksumOf(
  chunks: AsyncIterable<Uint8Array>,
  use: (chunk: Uint8Array) => void = () => {},
): Promise<ContentSum> {
  const sum = { bytes: 0, crc32: 0 };
  for await (const chunk of chunks) {
    sum.bytes += chunk.length;
    sum.crc32 = crc32(chunk, sum.crc32);
    use(chunk);
  }
  return sum;
}

/** CRC-32 of a file. */
export async function checksumFile(path: string): Promise<number> {
  return (await checksumOf(fileChunks(path))).crc32;
}

/** Throws TW_STORE_CORRUPT where bytes do not sum to what their record says. */
export function requireChecksum(
  found: number,
  expected: number | undefined,
  name: string,
  url: string,
): void {
  if (expected === undefined || found === expected) return;
  const [is, should] = [found, expected].map((crc) => crc.toString(16).padStart(8, '0'));
  throw storeCorrupt(name, url, `its checksum is ${is}, but ${should} was written`);
}

/** Passes chunks on as they come, and checks at their end what they sum to. */
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

/** A stream of chunks whose first one is there, or which is known to be empty. */
export async function streamOf(chunks: Chunks): Promise<Readable> {
  const stream = Readable.from(chunks, { objectMode: false });
  await once(stream, 'readable');
  return stream;
}
