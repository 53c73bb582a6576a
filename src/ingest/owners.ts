/**
 * Makes the tiles of a scene: on this node, or on the nodes of a cluster that own its cells, each of which fetches its own pixels.
 * Invariant: one write commits the tiles of all nodes together.
 */

import { runAllOrAbort } from '../async/index.js';
import type { ScenePart, SceneWrite } from '../storage/index.js';
import type { NegativeCount } from './cut/negative-reflectances.js';
import { type CutResources, type CutSettings, type CutTiles, cutScene } from './cut/scene.js';
import type { ScenePlan } from './plan.js';
import type { IngestHooks } from './scene.js';

/** Part of the progress of a remote scene that its fetch counts for; the network usually is slower than the cutting. */
const FETCH_SHARE = 0.7;

/** Divides the progress of a remote scene between its fetch and its cutting. */
function fetchProgress(hooks: IngestHooks) {
  return {
    onFetched: (share: number) => hooks.onProgress?.(FETCH_SHARE * share),
    cutHooks: {
      ...hooks,
      onProgress: (share: number) => hooks.onProgress?.(FETCH_SHARE + (1 - FETCH_SHARE) * share),
    },
  };
}

/** Tiles that are made but not committed. */
interface MadeTiles extends CutTiles {
  /** Those of other nodes. */
  parts: ScenePart[];
}

export interface SceneTask {
  plan: ScenePlan;
  write: SceneWrite;
  settings: CutSettings;
  fingerprint: string;
}

type Shares = ReturnType<CellOwners['divide']>;

/** Fetches the blocks of some cells of a remote scene and cuts the cells. Throws as `RemoteSource.fetch` and `cutScene` do. */
export async function fetchAndCut(
  resources: CutResources,
  { plan, write, settings }: Omit<SceneTask, 'fingerprint'>,
  remote: Pick<RemoteSource, 'fetch'>,
  cells: string[],
  hooks: IngestHooks,
): Promise<CutTiles> {
  const { onFetched, cutHooks } = fetchProgress(hooks);
  const source = await remote.fetch(plan, cells, onFetched);
  return cutScene(resources, source, cells, write, settings, cutHooks);
}

/**
 * Each node fetches and cuts its cells at the same time. This node makes those of nodes that fail, too. Throws as `fetchAndCut` does.
 */
export async function makeOnOwners(
  resources: CutResources,
  task: SceneTask,
  remote: RemoteSource & { owners: CellOwners },
  { own, others }: Shares,
  hooks: IngestHooks,
): Promise<MadeTiles> {
  const total = [...others.values()].reduce((sum, { length }) => sum + length, own.length);
  const progress = new Map<string, number>();
  const reporterOf =
    (key: string, { length }: string[]) =>
    (share: number) => {
      progress.set(key, (share * length) / total);
      hooks.onProgress?.([...progress.values()].reduce((sum, part) => sum + part, 0));
    };
  const made: MadeTiles = { tiles: [], parts: [], negative: { clear: 0, negative: 0 } };
  const add = ({ negative }: Pick<CutTiles, 'negative'>) => {
    made.negative.clear += negative.clear;
    made.negative.negative += negative.negative;
  };
  const makeOwn = async (cells: string[], onProgress: (share: number) => void, signal?: AbortSignal) => {
    if (cells.length === 0) return;
    const cut = await fetchAndCut(resources, task, remote, cells, { signal, onProgress });
    for (const tile of cut.tiles) made.tiles.push(tile);
    add(cut);
  };
  const left: string[] = [];
  const { write, fingerprint } = task;
  await runAllOrAbort(
    [
      (signal) => makeOwn(own, reporterOf('', own), signal),
      ...[...others].map(([node, cells]) => async (signal: AbortSignal) => {
        const wanted = { write, fingerprint, cells };
        const part = await remote.owners.make(node, wanted, reporterOf(node, cells), signal);
        if (!part) {
          for (const cell of cells) left.push(cell);
          progress.delete(node);
          return;
        }
        made.parts.push(part);
        add(part);
      }),
    ],
    hooks.signal,
  );
  await makeOwn(left, reporterOf('left', left), hooks.signal);
  hooks.onTiles?.(made.parts.reduce((sum, { tiles }) => sum + tiles.length, made.tiles.length));
  return made;
}

/**
 * Returns a function that makes the tiles of some cells for a write. If this node makes all tiles of a remote scene, it fetches the pixels
 * before the write begins, because a write excludes others of the scene. Throws as `RemoteSource.fetch` and `cutScene` do.
 */
export async function prepareTiles(
  resources: CutResources,
  task: Omit<SceneTask, 'write'>,
  cells: string[],
  hooks: IngestHooks,
  remote?: RemoteSource,
): Promise<(write: SceneTask['write']) => Promise<MadeTiles>> {
  if (cells.length === 0) return async () => ({ tiles: [], parts: [], negative: { clear: 0, negative: 0 } });
  const { plan, settings } = task;
  const { owners } = remote ?? {};
  const shares = owners?.divide(plan, cells);
  if (remote && owners && shares && shares.others.size > 0)
    return (write) => makeOnOwners(resources, { ...task, write }, { ...remote, owners }, shares, hooks);
  const { onFetched, cutHooks } = fetchProgress(hooks);
  const source = remote ? await remote.fetch(plan, cells, onFetched) : plan;
  return async (write) => ({
    ...(await cutScene(resources, source, cells, write, settings, remote ? cutHooks : hooks)),
    parts: [],
  });
}

/** The remote files of a scene, as an ingest uses them. */
export interface RemoteSource {
  /** Stored with the scene, see `SceneRecord.item`. */
  digest: string | undefined;
  /** Requests and bytes that `fetch` needs. */
  plan(plan: ScenePlan, cells: string[]): { requests: number; bytes: number };
  /** Returns the plan with files that hold the pixels of the cells. `onShare` gets the fetched part, 0 to 1. */
  fetch(plan: ScenePlan, cells: string[], onShare: (share: number) => void): Promise<ScenePlan>;
  /** The other nodes of a cluster, which can read the files as well; undefined if this node reads all. */
  owners: CellOwners | undefined;
}

/** Nodes of a cluster that make the tiles of the cells that they own. */
export interface CellOwners {
  /** Divides the cells of a scene by the running nodes that own them. */
  divide(plan: ScenePlan, cells: string[]): { own: string[]; others: Map<string, string[]> };
  /** Lets a node make tiles for a write. Returns undefined if the node fails. Throws the reason of `signal`. */
  make(
    node: string,
    wanted: WantedPart,
    onShare: (share: number) => void,
    signal: AbortSignal,
  ): Promise<MadePart | undefined>;
}

export interface WantedPart {
  write: SceneWrite;
  fingerprint: string;
  cells: string[];
}

/** Tiles of another node for a write, with the count of their pixels below zero. */
export interface MadePart extends ScenePart {
  negative: NegativeCount;
}
