/**
 * Files and version folders that survive a power cut: first the bytes are written, then the name, then the folder that contains the name.
 * Checksums tell if the bytes are intact.
 */
import { mkdir, open, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import { mapConcurrent } from '../async/index.js';
import { isMissingFile, onDisk, orIfMissing } from './disk.js';
import { storageBadName } from './errors.js';

/** Makes the bytes of a file or the names in a folder durable. */
export async function fsyncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Creates a folder and missing folders above it. If it was missing, its path is durable when this resolves. */
export async function makeFolderDurably(path: string): Promise<void> {
  for (const folder of await makeMissing(resolve(path))) await fsyncPath(dirname(folder));
}

/**
 * Creates a folder and missing folders above it, but not `root`. Resolves to those that it created. The recursive `mkdir` of Node never
 * ends if a parent exists but refuses every name, as `/proc` does.
 */
export async function makeMissing(folder: string, root = '/'): Promise<string[]> {
  try {
    return await makeOne(folder);
  } catch (error) {
    const isRefused = (error as NodeJS.ErrnoException).code !== 'ENOENT';
    if (isRefused || [folder, dirname(folder)].includes(root)) throw error;
  }
  const parents = await makeMissing(dirname(folder), root);
  return [...(await makeOne(folder)), ...parents];
}

async function makeOne(folder: string): Promise<string[]> {
  try {
    await mkdir(folder);
    return [folder];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if ((await stat(folder)).isDirectory()) return [];
    throw Object.assign(error as NodeJS.ErrnoException, { code: 'ENOTDIR' });
  }
}

/** Removes empty folders from `folder` upwards, at most those below `root`; returns the first that stays. */
export async function pruneEmpty(folder: string, root: string): Promise<string> {
  for (let at = folder; at !== root; at = dirname(at))
    try {
      await rmdir(at);
    } catch (error) {
      if (['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) return at;
      if (!isMissingFile(error)) throw error;
    }
  return root;
}

/** Syncs each of these folders once; skips those that have been removed in the meantime. */
export async function fsyncFolders(paths: Iterable<string>): Promise<void> {
  await mapConcurrent([...new Set(paths)], 4, (path) => orIfMissing(fsyncPath(path), undefined));
}

/** Writes a new file and waits until its bytes are on disk. Its name is durable after `fsyncPath` of its folder. */
export async function writeFileSynced(path: string, bytes: Uint8Array | string, mode = 0o644): Promise<void> {
  const handle = await open(path, 'w', mode);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes or replaces a file atomically: after a crash at any moment, the file is either the old or the new one. */
export async function writeFileDurably(
  path: string,
  bytes: Uint8Array | string,
  mode = 0o644,
): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  await writeFileSynced(`${path}.tmp`, bytes, mode);
  await rename(`${path}.tmp`, path);
  await fsyncPath(folder);
}

/** Bytes of a file, or on their way to one, in chunks. */
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

/**
 * Number of folders below `tiles` or `models` down to the folder of a version, this included. Versions are immutable: one is written in a
 * folder with `.tmp` at its end and published by one rename, so a folder without `.tmp` is complete. Paths are relative to the data folder,
 * with `/`.
 */
export const VERSION_DEPTH = { tiles: 4, models: 5 } as const;

const VERSION_PATH = /^(tiles(\/[A-Za-z0-9][A-Za-z0-9._+-]*){4}|models(\/[A-Za-z0-9][A-Za-z0-9._+-]*){5})$/;
const CONCURRENT_FOLDERS = 16;

export function stagingPath(path: string): string {
  return `${path}.tmp`;
}

/** Creates the empty folder in which the files of a version are written, and returns its absolute path. */
export async function stageVersion(dir: string, path: string): Promise<string> {
  const staging = join(dir, stagingPath(path));
  await onDisk(dir, () => mkdir(staging, { recursive: true }));
  return staging;
}

/**
 * Renames staged versions to their final names, then makes every name from `tiles` or `models` down durable, each folder
 * once. The files must have been synced before. A cache needs no `sync`.
 */
export async function publishVersions(dir: string, paths: string[], sync = true): Promise<void> {
  await onDisk(dir, async () => {
    await mapConcurrent(paths, CONCURRENT_FOLDERS, (path) =>
      rename(join(dir, stagingPath(path)), join(dir, path)),
    );
    if (!sync) return;
    const folders = new Set<string>();
    for (const path of paths)
      for (let folder = path; folder !== '.' && !folders.has(folder); folder = dirname(folder))
        folders.add(folder);
    await fsyncFolders([...folders].map((folder) => join(dir, folder)));
  });
}

/** Removes versions, staged or published, and the folders that become empty. Missing ones are ignored. */
export async function removeVersions(dir: string, paths: string[]): Promise<void> {
  await onDisk(dir, async () => {
    const shrunk = new Set<string>();
    await mapConcurrent(paths, CONCURRENT_FOLDERS, async (path) => {
      if (!VERSION_PATH.test(path)) throw storageBadName('path of a version', path);
      for (const name of [path, stagingPath(path)])
        await rm(join(dir, name), { recursive: true, force: true });
      shrunk.add(await pruneEmpty(dirname(join(dir, path)), join(dir, path.split('/')[0])));
    });
    await fsyncFolders(shrunk);
  });
}
