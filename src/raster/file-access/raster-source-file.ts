/** Opens files. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { TilewrightError } from '../../errors.js';
import { notTiff, rasterUnreadable } from '../errors.js';

/**
 * Opens a regular file for reading. Throws system errors, and an error for pipes and devices: a plain open would wait for a
 * pipe without end.
 */
export async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const status = await file.stat();
    if (!status.isFile() && !status.isDirectory()) throw new Error('it is a pipe or a device');
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Reads a complete small file. Throws the errors of `openFile`, and an error for a folder or if the file has more than `most`
 * bytes.
 */
export async function readSmallFile(path: string, most: number): Promise<Buffer> {
  const file = await openFile(path);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new Error('it is a folder');
    if (status.size > most) throw new Error(`it has ${status.size} bytes, and at most ${most} are read`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** The first bytes of an open file, at most `most`. */
export async function readStart(file: FileHandle, most: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(most), 0, most, 0);
  return buffer.subarray(0, bytesRead);
}

/** Reads parts of a file; a `FileHandle` is one. */
export interface ByteReader {
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  /** Throws if the reader would not read a part. Called before memory for the part is allocated. */
  checkPart?(position: number, length: number): void;
}

/** An open file, its size, and its first bytes, which hold the signature and mostly the directory. */
export interface SourceFile<Reader = FileHandle> {
  path: string;
  size: number;
  start: Uint8Array;
  handle: Reader;
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
    const start = await readStart(handle, Math.min(PREFETCH_BYTES, status.size));
    return await use({ path, size: status.size, start, handle });
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    throw rasterUnreadable.because(error, path, error);
  } finally {
    await handle?.close();
  }
}
