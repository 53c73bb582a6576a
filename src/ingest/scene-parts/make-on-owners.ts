/** Makes the tiles of a remote scene on the nodes that own their cells. */
import { runAllOrAbort } from '../../async/index.js';
import type { ScenePart, SceneWrite } from '../../storage/index.js';
import { type CutResources, type CutSettings, type CutTiles, cutScene } from '../cut/index.js';
import type { IngestHooks } from '../ingest-options.js';
import type { ScenePlan } from '../plan/index.js';
import { type CellOwners, fetchProgress, type RemoteSource } from '../remote/index.js';

/** Tiles that are made but not committed. */
export interface MadeTiles extends CutTiles {
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
