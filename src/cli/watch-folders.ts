/** Waits for inputs that come into folders, whole files and whole product folders. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Between two looks at the folders, ms. Looking works on every file system; change notices do not on network mounts. */
const POLL_INTERVAL_MS = 2000;
/** What has not changed for so many looks is whole: copying it has ended. */
const STABLE_POLLS = 3;
/** Levels of a product folder in which files lie (a SAFE folder has five). */
const MAX_DEPTH = 6;

interface PolledState {
  /** Number, size and newest change of the files. */
  state: string;
  polls: number;
}

/**
 * Paths of files and folders that lie in `folders` and are whole, one batch a look, mostly empty: first all that are there, then
 * each one that is new or has changed. Ends when the signal is raised. Names that begin with a dot are left out.
 */
export async function* watchForCompleteInputs(
  folders: string[],
  signal: AbortSignal,
): AsyncGenerator<string[]> {
  const seen = new Map<string, PolledState>();
  while (!signal.aborted) {
    const settled: string[] = [];
    const children = (await Promise.all(folders.map(childrenOf))).flat();
    for (const path of children) {
      const state = await stateOf(path, MAX_DEPTH);
      const before = seen.get(path);
      const polls = before?.state === state ? before.polls + 1 : 1;
      seen.set(path, { state, polls });
      if (polls === STABLE_POLLS) settled.push(path);
    }
    for (const path of seen.keys()) if (!children.includes(path)) seen.delete(path);
    yield settled;
    // It rejects only if the signal is aborted, and the loop checks the signal.
    await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** People move products while they are looked at, and mounts come back. Any other error is one. */
function nullWhereGone(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}

/** None where the folder is gone. */
async function childrenOf(folder: string): Promise<string[]> {
  const names = (await readdir(folder).catch(nullWhereGone)) ?? [];
  return names
    .filter((name) => !name.startsWith('.'))
    .sort()
    .map((name) => join(folder, name));
}

/** Empty where the path is gone. */
async function stateOf(path: string, depth: number): Promise<string> {
  // Links are not followed: they may lead round in a circle.
  const info = await lstat(path).catch(nullWhereGone);
  if (!info) return '';
  const own = `${info.size} ${info.mtimeMs}`;
  if (!info.isDirectory() || depth === 0) return own;
  const below = await Promise.all((await childrenOf(path)).map((child) => stateOf(child, depth - 1)));
  return [own, ...below].join('\n');
}
