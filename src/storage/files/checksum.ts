/** Bytes of files in chunks, and their checksums. */
import { open, stat } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { orIfMissing } from './disk-errors.js';

export type Chunks = AsyncGenerator<Uint8Array, void>;

export interface Checksum {
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

/** Length and CRC-32 of all chunks. Each chunk is also passed to `use`. */
export async function checksumOf(
  chunks: AsyncIterable<Uint8Array>,
  use: (chunk: Uint8Array) => void = () => {},
): Promise<Checksum> {
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

/** True if a file has the length and the CRC-32 of its record; false if it differs or is missing. */
export async function isIntact(path: string, expected: Checksum): Promise<boolean> {
  const info = await orIfMissing(stat(path), undefined);
  if (info?.size !== expected.bytes) return false;
  return (await orIfMissing(checksumFile(path), undefined)) === expected.crc32;
}
