import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { outcomeOf, RequestFailed, stackedTiles, startStack } from './client.js';
import type { TestNode } from './cluster.js';
import type { JobEnd } from './history.js';
import type { Setting } from './workload.js';

/**
 * Has a node begin a job over all tiles, which the owners of the tiles do, and records what it has come to. Asks other nodes where
 * that one is gone for good. Undefined where that is not known before the signal.
 */
export async function stackAll(
  { cluster, history }: Setting,
  node: TestNode,
  signal?: AbortSignal,
): Promise<JobEnd | undefined> {
  const invoked = history.now();
  const key = randomUUID();
  const end = (rest: Pick<JobEnd, 'outcome' | 'tiles' | 'why'>) =>
    history.add<JobEnd>({ kind: 'job', node: node.name, invoked, ended: history.now(), ...rest });
  let job: string | undefined;
  for (let tries = 0; !signal?.aborted; tries++, await sleep(100))
    try {
      const { nodes } = cluster;
      const { url } = nodes.includes(node) ? node : nodes[tries % nodes.length]!;
      job ??= await startStack(url, key);
      const ended = await outcomeOf(url, job);
      if (ended?.outcome === 'done') return end({ outcome: 'done', tiles: await stackedTiles(url, job) });
      if (ended) return end({ outcome: 'failed', tiles: [], why: ended.why ?? '' });
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      const isRefused = job === undefined && error.status !== undefined && error.status < 500;
      if (isRefused) return end({ outcome: 'failed', tiles: [], why: error.message });
    }
  return undefined;
}
