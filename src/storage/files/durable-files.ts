/** Writes files that survive a power cut: first the bytes, then the name, then the folder that contains the name. */
import { mkdir, open, rename, rmdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import { isMissingFile, orIfMissing } from './disk-errors.js';

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
