/** Searches over HTTP: at the nodes of a cluster in turn, and at one node that has all the tiles. */

import type { SearchRequest } from '../search/search-requests.js';
import { type BenchResult, median, result } from '../support/bench.js';
import { askBytes, type Server } from './servers.js';

export async function measureSearches(
  nodes: Server[],
  single: Server,
  { requests, warm, title }: { requests: SearchRequest[]; warm: SearchRequest[]; title: string },
): Promise<BenchResult[]> {
  for (const one of warm) {
    const found = await Promise.all(
      [...nodes, single].map(async (server) => idsOf(await search(server, one))),
    );
    const odd = found.find((ids) => ids !== found[0]);
    if (odd !== undefined) throw new Error(`cluster and node find other items for ${one.body}`);
  }
  const times: { kind: string; ours: number; theirs: number }[] = [];
  for (const [i, one] of requests.entries()) {
    const ours = await timed(nodes[i % nodes.length]!, one);
    const theirs = await timed(single, one);
    times.push({ kind: one.kind, ours, theirs });
  }
  const of = (kind?: string) => {
    const some = times.filter((time) => kind === undefined || time.kind === kind);
    return [median(some.map(({ ours }) => ours)), median(some.map(({ theirs }) => theirs))] as const;
  };
  const [ours, theirs] = of();
  const peer = 'one node';
  return [
    result(`${title}: p50`, 'ms', ours, { [peer]: theirs, mark: Math.max(2 * theirs, theirs + 3) }),
    ...['box', 'polygon', 'newest'].map((kind) =>
      result(`${title}, ${kind}: p50`, 'ms', of(kind)[0], { [peer]: of(kind)[1] }),
    ),
  ];
}

async function timed(server: Server, request: SearchRequest): Promise<number> {
  const begun = performance.now();
  await search(server, request);
  return performance.now() - begun;
}

const search = (server: Server, { body }: SearchRequest) => askBytes(server, '/search', JSON.parse(body));

const idsOf = (answer: Buffer) =>
  (JSON.parse(answer.toString()) as { features: { id: string }[] }).features.map(({ id }) => id).join();
