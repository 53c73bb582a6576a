/** Jobs of clients, followed to their end through any node that answers. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobAnswers } from './checkers.js';
import {
  ask,
  askJson,
  COLLECTION,
  type Outcome,
  outcomeOf,
  RequestFailed,
  stackedTiles,
  startJob,
} from './client.js';
import type { TestCluster, TestNode } from './cluster.js';
import type { JobEnd } from './history.js';
import type { Setting } from './workload.js';

/** After this many rounds in which every node answers 404, a job is considered forgotten: a rebuilt etcd lists no jobs. */
const FORGOTTEN_AFTER = 5;

/** Determines whether a job is forgotten, from the answers of the nodes. */
export class Forgotten {
  private inRow = 0;

  /** True if the last answer was 404: other nodes should be asked. */
  get suspects(): boolean {
    return this.inRow > 0;
  }

  /** Call it with each failed answer; true as soon as all of `nodes` nodes have answered 404 for some rounds. */
  see({ status }: RequestFailed, nodes: number): boolean {
    this.inRow = status === 404 ? this.inRow + 1 : 0;
    return this.inRow >= FORGOTTEN_AFTER * nodes;
  }
}

/** A job that has ended; `url` is the node that reported it. */
export interface EndedJob extends Outcome {
  id?: string;
  url: string;
}

/**
 * Starts a job and waits for its end. If the node is gone for good, asks the others. Undefined if the end is unknown when the
 * signal aborts.
 */
export async function runJob(
  { cluster }: Setting,
  node: TestNode,
  { process, inputs }: { process: string; inputs: object },
  signal?: AbortSignal,
): Promise<EndedJob | undefined> {
  const key = randomUUID();
  const forgotten = new Forgotten();
  let id: string | undefined;
  for (let tries = 0; !signal?.aborted; tries++, await sleep(100)) {
    const { nodes } = cluster;
    const asked = nodes.includes(node) && !forgotten.suspects ? node : nodes[tries % nodes.length]!;
    const { url } = asked;
    try {
      id ??= await startJob(url, process, inputs, key);
      const ended = await outcomeOf(url, id);
      if (ended) return { ...ended, id, url };
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      const { status, message: why } = error;
      if (id === undefined && status !== undefined && status < 500) return { outcome: 'refused', why, url };
      if (id !== undefined && forgotten.see(error, nodes.length)) return { outcome: 'unknown', why, url };
    }
  }
  return undefined;
}

/** Jobs whose logs and results are read; the list has all. */
const READ_JOBS = 40;

/** Reads the answers of each node about the jobs, which have ended. The addresses of the nodes are left out of links. */
export async function readJobs({ nodes }: TestCluster): Promise<JobAnswers[]> {
  const textOf = async (url: string, path: string) => {
    try {
      return (await (await ask(url, path)).text()).replaceAll(`${url}/`, '/');
    } catch (error) {
      if (error instanceof RequestFailed && error.status !== undefined)
        return `${error.status} ${error.code}`;
      throw error;
    }
  };
  const list = '/jobs?limit=1000';
  const { jobs } = await askJson<{ jobs: { jobID: string }[] }>(nodes[0]!.url, list);
  const paths = jobs
    .slice(0, READ_JOBS)
    .flatMap(({ jobID }) => ['', '/logs?limit=10000', '/results'].map((part) => `/jobs/${jobID}${part}`));
  return Promise.all(
    nodes.map(async ({ name, url }) => {
      const answers = new Map<string, string>();
      for (const path of [list, ...paths]) answers.set(path, await textOf(url, path));
      return { node: name, answers };
    }),
  );
}

/** Stacks one band of all tiles, and records the tiles that the result names. */
export async function stackAll(
  setting: Setting,
  node: TestNode,
  signal?: AbortSignal,
): Promise<JobEnd | undefined> {
  const { history } = setting;
  const invoked = history.now();
  const inputs = { bands: ['red'], filter: { collections: [COLLECTION] } };
  const ended = await runJob(setting, node, { process: 'tensor', inputs }, signal);
  if (!ended) return undefined;
  const isDone = ended.outcome === 'done';
  // The node that answered may be killed before its result is read.
  const tiles = isDone
    ? await stackedTiles(ended.url, ended.id!).catch((error: unknown) => error as Error)
    : [];
  if (tiles instanceof Error && !(tiles instanceof RequestFailed)) throw tiles;
  const why = tiles instanceof Error ? tiles.message : ended.why;
  return history.add<JobEnd>({
    kind: 'job',
    node: node.name,
    invoked,
    ended: history.now(),
    outcome: isDone && Array.isArray(tiles) ? 'done' : 'failed',
    tiles: Array.isArray(tiles) ? tiles : [],
    ...(why !== undefined && { why }),
  });
}
