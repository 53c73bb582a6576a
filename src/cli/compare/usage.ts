/** What the nodes of a cluster use while a training runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeUsage } from '../../client/index.js';

/** Nodes that do not answer are left out. */
export type ReadUsage = () => Promise<NodeUsage[]>;

export interface Usage {
  /** From the first look to the last. */
  seconds: number;
  /** All nodes with their processes. */
  cpuSeconds: number;
  /** Sent by all nodes, each byte once; absent if no node counts them. */
  sentBytes?: number;
  nodes: { id: string; cpuSeconds: number; sentBytes?: number; peakMemoryBytes: number }[];
  /** Means of the nodes: cores in use since the look before, and memory. */
  trace: { seconds: number; cores: number; memoryBytes: number }[];
}

interface Look {
  /** Seconds. */
  at: number;
  nodes: NodeUsage[];
}

/** Reads the usage before and after some work, and every `interval` ms meanwhile. Throws what the work throws. */
export async function withUsage<T>(
  read: ReadUsage,
  interval: number,
  work: () => Promise<T>,
): Promise<{ result: T; usage: Usage }> {
  const look = async (): Promise<Look> => ({ nodes: await read(), at: performance.now() / 1e3 });
  const looks = [await look()];
  const ended = new AbortController();
  const looking = lookOften(look, interval, looks, ended.signal);
  try {
    const result = await work();
    ended.abort();
    await looking;
    looks.push(await look());
    return { result, usage: usageOf(looks) };
  } finally {
    ended.abort();
    await looking;
  }
}

async function lookOften(look: () => Promise<Look>, interval: number, looks: Look[], signal: AbortSignal) {
  for (;;) {
    await sleep(interval, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    // A missed look shows in the curves alone.
    const one = await look().catch(() => undefined);
    if (one) looks.push(one);
  }
}

/** Counters that only grow; one that is less than before was set to 0 when its node started again. */
const grown = (before: number | undefined, now: number) =>
  before === undefined || now < before ? now : now - before;

/** At least two looks, in the order of time. A node that comes later counts from its start. */
export function usageOf(looks: Look[]): Usage {
  const ids = [...new Set(looks.flatMap(({ nodes }) => nodes.map(({ id }) => id)))].sort();
  const last = new Map<string, NodeUsage>();
  const sums = new Map(ids.map((id) => [id, { cpuSeconds: 0, sentBytes: 0, peakMemoryBytes: 0 }]));
  const namespaces = namespacesOf(looks);
  const lastSent = new Map<string, number>();
  let sentBytes = 0;
  const trace: Usage['trace'] = [];
  looks.forEach(({ at, nodes }, i) => {
    const cpuBefore = [...sums.values()].reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
    for (const node of nodes) {
      const sum = sums.get(node.id)!;
      sum.peakMemoryBytes = Math.max(sum.peakMemoryBytes, node.memoryBytes);
      if (i > 0) sum.cpuSeconds += grown(last.get(node.id)?.cpuSeconds, node.cpuSeconds);
      if (node.network && namespaces.get(node.network.namespace)!.size === 1 && i > 0)
        sum.sentBytes += grown(last.get(node.id)?.network?.sentBytes, node.network.sentBytes);
      last.set(node.id, node);
    }
    for (const [namespace, sent] of sentIn(nodes, namespaces)) {
      if (i > 0) sentBytes += grown(lastSent.get(namespace), sent);
      lastSent.set(namespace, sent);
    }
    if (i === 0) return;
    const cpuNow = [...sums.values()].reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
    const seconds = at - looks[i - 1]!.at;
    if (seconds <= 0 || nodes.length === 0) return;
    trace.push({
      seconds: at - looks[0]!.at,
      cores: (cpuNow - cpuBefore) / seconds / nodes.length,
      memoryBytes: nodes.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0) / nodes.length,
    });
  });
  return {
    seconds: looks.at(-1)!.at - looks[0]!.at,
    cpuSeconds: [...sums.values()].reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    ...(namespaces.size > 0 && { sentBytes }),
    nodes: ids.map((id) => {
      const { sentBytes: sent, ...rest } = sums.get(id)!;
      const { network } = last.get(id)!;
      const isAlone = network && namespaces.get(network.namespace)!.size === 1;
      return { id, ...rest, ...(isAlone && { sentBytes: sent }) };
    }),
    trace,
  };
}

/** The nodes of each network namespace. */
function namespacesOf(looks: Look[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { nodes } of looks)
    for (const { id, network } of nodes)
      if (network) found.set(network.namespace, (found.get(network.namespace) ?? new Set()).add(id));
  return found;
}

/**
 * Bytes by namespace. Nodes that share one count what they send once, and speak with each other over its loopback; what a node alone sends
 * there leaves it for no other.
 */
function sentIn(nodes: NodeUsage[], namespaces: Map<string, Set<string>>): Map<string, number> {
  return new Map(
    nodes.flatMap(({ network }): [string, number][] => {
      if (!network) return [];
      const { namespace, sentBytes, loopbackBytes } = network;
      return [[namespace, sentBytes + (namespaces.get(namespace)!.size > 1 ? loopbackBytes : 0)]];
    }),
  );
}
