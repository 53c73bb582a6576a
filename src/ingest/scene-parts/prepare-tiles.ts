/** Makes the tiles of a scene: on this node, or on the nodes that own its cells. */
import { type CutResources, cutScene } from '../cut/index.js';
import type { IngestHooks } from '../ingest-options.js';
import { fetchProgress, type RemoteSource } from '../remote/index.js';
import { type MadeTiles, makeOnOwners, type SceneTask } from './make-on-owners.js';

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
