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
 * those that are new or have changed. Ends when the signal is aborted. Ignores names that begin with a dot. Paths with the same `sceneOf`
 * are complete together, and the first of them is returned.
 */
export async function* watchForCompleteInputs(
  folders: string[],
  sceneOf: (path: string) => string,
  signal: AbortSignal,
): AsyncGenerator<string[]> {
  const seen = new Map<string, PolledState>();
  while (!signal.aborted) {
    const settled: string[] = [];
    const scenes = new Map<string, string[]>();
    for (const path of (await Promise.all(folders.map(childrenOf))).flat()) {
      const scene = sceneOf(path);
      scenes.set(scene, [...(scenes.get(scene) ?? []), path]);
    }
    for (const [scene, paths] of scenes) {
      const states = await Promise.all(paths.map((path) => stateOf(path, MAX_DEPTH)));
      const state = states.join('\n');
      const before = seen.get(scene);
      const polls = before?.state === state ? before.polls + 1 : 1;
      seen.set(scene, { state, polls });
      if (polls === STABLE_POLLS) settled.push(paths[0]!);
    }
    for (const scene of seen.keys()) if (!scenes.has(scene)) seen.delete(scene);
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
