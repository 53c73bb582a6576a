/** Local files of `ingest`: `--upload` sends them to a server, and `--watch` waits for complete new ones. */
import { lstat, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, RunHooks } from '../../client/index.js';
import { TilewrightError } from '../../errors.js';
import type { IngestInputs, IngestResults, SkippedFile } from '../../ingest/index.js';
import type { Timed } from '../../jobs/index.js';
import { outcomeOf } from '../connection.js';
import { logToStderr } from '../output.js';

interface FilesToUpload {
  /** The files of each input; those after the first one are sent beside it. */
  inputs: string[][];
  passedOver: string[];
  skipped: SkippedFile[];
}

/** For a folder, the inputs in it, as for `ingest` without `--upload`. The folder of a product stays one path. */
async function findFilesToUpload(paths: string[], namePattern: string | undefined): Promise<FilesToUpload> {
  const { inputFinder } = await import('../../ingest/index.js');
  const finder = inputFinder(namePattern);
  const files: FilesToUpload = { inputs: [], passedOver: [], skipped: [] };
  for (const path of paths) {
    // A path that does not exist is kept here; `uploadAll` reports it.
    const isFolder = await stat(path).then(
      (info) => info.isDirectory(),
      () => false,
    );
    const found = isFolder || namePattern ? await finder.find(path) : { inputs: [path], passedOver: [] };
    for (const input of found.inputs) files.inputs.push(await finder.filesOf(input));
    files.passedOver.push(...found.passedOver);
    files.skipped.push(...(found.skipped ?? []));
  }
  return files;
}

/** Sends one file after the other. If a file fails, the others are still sent. */
export async function uploadAll(
  client: Client,
  paths: string[],
  options: Partial<IngestInputs>,
  hooks: RunHooks,
): Promise<Timed<IngestResults>> {
  const { sideFilesOf } = await import('../../ingest/index.js');
  const { inputs, passedOver, skipped } = await findFilesToUpload(paths, options.namePattern);
  const all: Timed<IngestResults> = {
    collection: null,
    scenes: [],
    tiles: 0,
    failed: [],
    passedOver,
    skipped,
    seconds: 0,
  };
  for (const [path, ...others] of inputs) {
    try {
      const sideFiles = [...others, ...(await Promise.all([path, ...others].map(sideFilesOf))).flat()];
      logToStderr(`sending ${[path, ...sideFiles].join(', ')}`);
      const { results } = await outcomeOf<IngestResults>(client.upload(path, options, hooks, sideFiles));
      all.collection ??= results.collection;
      all.scenes.push(...results.scenes);
      all.tiles += results.tiles;
      all.failed.push(...results.failed);
      all.passedOver.push(...results.passedOver);
      all.seconds += results.seconds;
    } catch (error) {
      if (hooks.signal?.aborted || !(error instanceof TilewrightError)) throw error;
      all.failed.push({ path, code: error.code, message: error.message });
    }
  }
  return all;
}

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
