/** Watches folders for complete new inputs: files and product folders. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Polling works on every file system; change notifications do not work on network mounts. */
const POLL_INTERVAL_MS = 2000;
/** An input is complete if it has not changed for this many polls. */
const STABLE_POLLS = 3;
/** Depth to which product folders are searched for changes (a SAFE folder has five levels). */
const MAX_DEPTH = 6;

interface PolledState {
  /** Sizes and modification times of the files. */
  state: string;
  polls: number;
}

/**
 * Yields the paths of complete files and folders in `folders`, a batch for each poll, which may be empty: first all existing ones, later
 * those that are new or have changed. Ends when the signal is aborted. Ignores names that begin with a dot.
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

/** Ignores missing paths: products are moved during a poll, and mounts disappear temporarily. Throws any other error. */
function nullWhereGone(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}

/** Empty if the folder does not exist. */
async function childrenOf(folder: string): Promise<string[]> {
  const names = (await readdir(folder).catch(nullWhereGone)) ?? [];
  return names
    .filter((name) => !name.startsWith('.'))
    .sort()
    .map((name) => join(folder, name));
}

/** Empty if the path does not exist. */
async function stateOf(path: string, depth: number): Promise<string> {
  // Links are not followed, because they may form a cycle.
  const info = await lstat(path).catch(nullWhereGone);
  if (!info) return '';
  const own = `${info.size} ${info.mtimeMs}`;
  if (!info.isDirectory() || depth === 0) return own;
  const below = await Promise.all((await childrenOf(path)).map((child) => stateOf(child, depth - 1)));
  return [own, ...below].join('\n');
}
