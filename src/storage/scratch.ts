/** Folders below `<data>/scratch` for files on their way. No record names them, and none outlives the process. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { onDisk } from './errors.js';
import { checkedName, newVersion } from './names.js';

const SCRATCH = 'scratch';

/** Makes an empty folder whose name begins with `name`, and returns its absolute path. */
export async function makeScratch(dir: string, name: string): Promise<string> {
  const folder = join(dir, SCRATCH, `${checkedName('file name', name)}-${newVersion()}`);
  await onDisk(dir, () => mkdir(folder, { recursive: true }));
  return folder;
}

/** Removes what a dead process has left. Called at open, when nobody uses it. */
export function sweepScratch(dir: string): Promise<void> {
  return onDisk(dir, () => rm(join(dir, SCRATCH), { recursive: true, force: true }));
}
