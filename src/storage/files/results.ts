/** Folders below `<data>/results` for files that jobs answer with. `src/jobs/local/retention.ts` says how long they are kept. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { onDisk } from '../errors.js';
import { checkedName } from './names.js';
import { lastChangedMs } from './scratch.js';

const RESULTS = 'results';

/** Absolute path of the folder of a job. Throws TW_STORAGE_BAD_NAME. */
export function resultsFolder(dir: string, job: string): string {
  return join(dir, RESULTS, checkedName('version', job));
}

/** Absolute path of one of its files. Throws TW_STORAGE_BAD_NAME. */
export function resultFile(dir: string, job: string, name: string): string {
  return join(resultsFolder(dir, job), checkedName('file name', name));
}

export async function createResultsFolder(dir: string, job: string): Promise<string> {
  const folder = resultsFolder(dir, job);
  await onDisk(dir, () => mkdir(folder, { recursive: true }));
  return folder;
}

/** Removes the folders that were last changed before the time `before`, except those that are named by a job of `isKept`. */
export function expireResults(
  dir: string,
  before: number,
  isKept: (job: string) => Promise<boolean>,
): Promise<void> {
  return onDisk(dir, async () => {
    await mkdir(join(dir, RESULTS), { recursive: true });
    for (const name of await readdir(join(dir, RESULTS))) {
      const folder = join(dir, RESULTS, name);
      if ((await lastChangedMs(folder)) < before && !(await isKept(name)))
        await rm(folder, { recursive: true, force: true });
    }
  });
}
