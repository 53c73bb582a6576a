/**
 * Immutable version folders with the files of a tile or a model. A version is written in `<version>.tmp` and published by
 * one rename, so a folder without `.tmp` is complete. Paths are relative to the data folder, with `/`, five names below
 * `tiles` or `models`.
 */
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import { storageBadName } from '../errors.js';
import { onDisk } from './disk-errors.js';
import { fsyncFolders, pruneEmpty } from './durable-files.js';

/** Number of folders between `tiles` or `models` and the files of a version, including the version folder. */
export const VERSION_DEPTH = 5;

const VERSION_PATH = /^(tiles|models)(\/[A-Za-z0-9][A-Za-z0-9._+-]*){5}$/;
const CONCURRENCY = 16;

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
    await mapConcurrent(paths, CONCURRENCY, (path) => rename(join(dir, stagingPath(path)), join(dir, path)));
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
    await mapConcurrent(paths, CONCURRENCY, async (path) => {
      if (!VERSION_PATH.test(path)) throw storageBadName('path of a version', path);
      for (const name of [path, stagingPath(path)])
        await rm(join(dir, name), { recursive: true, force: true });
      shrunk.add(await pruneEmpty(dirname(join(dir, path)), join(dir, path.split('/')[0])));
    });
    await fsyncFolders(shrunk);
  });
}
