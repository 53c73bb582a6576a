/** Folders below `<data>/scratch` for files on their way. None outlives the process, but those of work that goes on. */
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Catalogue } from '../catalogue/catalogue.js';
import { onDisk } from '../errors.js';
import { fsyncFolders } from './durable-fs.js';
import { checkedName, isVersion, newVersion } from './names.js';

const SCRATCH = 'scratch';
const PERSISTENT_PREFIX = 'kept-';

/** Makes an empty folder whose name begins with `name`, and returns its absolute path. */
export async function makeScratch(dir: string, name: string): Promise<string> {
  const folder = resolve(dir, SCRATCH, `${checkedName('file name', name)}-${newVersion()}`);
  await onDisk(dir, () => mkdir(folder, { recursive: true }));
  return folder;
}

/** A folder in which a job keeps what it may go on from; it stays for as long as the job can go on. Returns its absolute path. */
export async function makeJobScratch(dir: string, job: string): Promise<string> {
  const folder = scratchPath(dir, job);
  await onDisk(dir, () => mkdir(folder, { recursive: true }));
  return folder;
}

/**
 * A folder in which work keeps what it may go on from, whichever job does it; `name` names the work. It stays until it is removed, or
 * `expireScratch` finds it old. Returns its absolute path.
 */
export async function makePersistentScratch(dir: string, name: string): Promise<string> {
  const folder = resolve(dir, SCRATCH, `${PERSISTENT_PREFIX}${checkedName('file name', name)}`);
  await onDisk(dir, () => mkdir(folder, { recursive: true }));
  return folder;
}

/** A path for a file that soon gets another name in the data folder. */
export function scratchFile(dir: string): string {
  return join(dir, SCRATCH, newVersion());
}

/** Makes the name of a scratch folder and the names in it durable. Its files have been synced. Throws TW_STORAGE_BAD_NAME. */
export async function syncScratch(dir: string, name: string): Promise<void> {
  const folder = scratchPath(dir, name);
  await onDisk(dir, () => fsyncFolders([folder, join(dir, SCRATCH), dir]));
}

/** Removes a scratch folder, given by its name or by the path that was returned when it was made. Throws TW_STORAGE_BAD_NAME. */
export async function removeScratch(dir: string, folder: string): Promise<void> {
  const isPath = dirname(folder) === resolve(dir, SCRATCH);
  const path = scratchPath(dir, isPath ? basename(folder) : folder);
  await onDisk(dir, () => rm(path, { recursive: true, force: true }));
}

function scratchPath(dir: string, name: string): string {
  return resolve(dir, SCRATCH, checkedName('file name', name));
}

/** Removes what a dead process has left, except what jobs or later work go on from. Called at open, when nobody uses it. */
export async function cleanScratchAtOpen(dir: string, catalogue: Catalogue): Promise<void> {
  const kept = new Set<string>();
  for await (const { record } of catalogue.jobs.scan())
    if (record?.resumable && record.finished === undefined)
      for (const name of [record.id, ...(record.uploads ?? [])]) kept.add(name);
  await onDisk(dir, async () => {
    const folder = join(dir, SCRATCH);
    await mkdir(folder, { recursive: true });
    for (const name of await readdir(folder)) {
      if (kept.has(name) || name.startsWith(PERSISTENT_PREFIX)) continue;
      await rm(join(folder, name), { recursive: true, force: true });
    }
  });
}

/**
 * While the process runs: removes what was last changed before the time `before` and is kept for work that may go on, unless it is
 * named by a job of `isKept`. Other folders belong to work that is under way and removes them itself.
 */
export async function expireScratch(
  dir: string,
  before: number,
  isKept: (job: string) => Promise<boolean>,
): Promise<void> {
  await onDisk(dir, async () => {
    for (const name of await readdir(join(dir, SCRATCH))) {
      if (!name.startsWith(PERSISTENT_PREFIX) && !isVersion(name)) continue;
      const path = join(dir, SCRATCH, name);
      if ((await lastChangedMs(path)) < before && !(await isKept(name)))
        await rm(path, { recursive: true, force: true });
    }
  });
}

/** The time of the last change, ms since 1970; Infinity if it was removed or renamed in the meantime. */
export async function lastChangedMs(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Infinity;
    throw error;
  }
}
