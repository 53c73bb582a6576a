import type { FileHandle } from 'node:fs/promises';
import { TilewrightError } from '../../errors.js';
import { notTiff, rasterUnreadable } from '../errors.js';
import { openFile } from './open-file.js';

/** An open file, its size, and its first bytes, which hold the signature and mostly the directory. */
export interface SourceFile {
  path: string;
  size: number;
  start: Uint8Array;
  handle: FileHandle;
}

/** A read of this size takes hardly longer than one of a few bytes, and it covers the headers of most tiles and scenes. */
const PREFETCH_BYTES = 16_384;

/** Opens a file while `use` runs. Throws TW_RASTER_UNREADABLE, and TW_RASTER_NOT_TIFF for a folder. */
export async function withFile<T>(path: string, use: (file: SourceFile) => Promise<T>): Promise<T> {
  let handle: FileHandle | undefined;
  try {
    handle = await openFile(path);
    const status = await handle.stat();
    if (status.isDirectory()) throw notTiff(path, 'it is a folder', 'Name a file.');
    const start = new Uint8Array(Math.min(PREFETCH_BYTES, status.size));
    const { bytesRead } = await handle.read(start, 0, start.length, 0);
    return await use({ path, size: status.size, start: start.subarray(0, bytesRead), handle });
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    throw rasterUnreadable.because(error, path, error);
  } finally {
    await handle?.close();
  }
}
