/** Folders below `<data>/results` for files that jobs answer with. They are kept for a while after their job. */
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { onDisk } from './errors.js';
import { checkedName } from './names.js';

const RESULTS = 'results';
/** How long they are kept, ms. */
const KEPT = 7 * 86_400_000;

/** Absolute path of the folder of a job. Throws TW_STORAGE_BAD_NAME. */
export function resultsPath(dir: string, job: string): string {
  return join(dir, RESULTS, checkedName('version', job));
}

/** Absolute path of one of its files. Throws TW_STORAGE_BAD_NAME. */
export function resultFile(dir: string, job: string, name: string): string {
  return join(resultsPath(dir, job), checkedName('file name', name));
}

export async function makeResults(dir: string, job: string): Promise<string> {
  const folder = resultsPath(dir, job);
  await onDisk(dir, () => mkdir(folder, { recursive: true }));
  return folder;
}

/** Removes what was made longer ago. Called at open. */
export function sweepResults(dir: string): Promise<void> {
  return onDisk(dir, async () => {
    await mkdir(join(dir, RESULTS), { recursive: true });
    for (const name of await readdir(join(dir, RESULTS))) {
      const folder = join(dir, RESULTS, name);
      if (Date.now() - (await stat(folder)).mtimeMs > KEPT) await rm(folder, { recursive: true });
    }
  });
}
