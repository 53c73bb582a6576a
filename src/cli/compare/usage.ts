/** What the nodes of a cluster use while a training runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeUsage } from '../../client/index.js';

/** Returns what the nodes use that answer. */
export type ReadUsage = () => Promise<NodeUsage[]>;

export interface Usage {
  /** From the first look to the last. */
  seconds: number;
  /** All nodes with their processes. */
  cpuSeconds: number;
  /** False if a node counts the server process alone: CPU time and memory say nothing of the training then. */
  includesChildren: boolean;
  /** Sent by all nodes, each byte once; absent if no node counts them. */
  sentBytes?: number;
  nodes: { id: string; cpuSeconds: number; sentBytes?: number; peakMemoryBytes: number }[];
  /** Nodes that did not answer the first or the last look: what they used is not known in full. */
  incomplete: string[];
  /** Means of the nodes: cores in use since the look before, and memory. */
  trace: { seconds: number; cores: number; memoryBytes: number }[];
}

export interface Look {
  /** Seconds. */
  at: number;
  nodes: NodeUsage[];
}

/** How often the first and the last look are tried until all nodes answer, and the pause between, ms. */
const MOST_TRIES = 10;
const PAUSE = 300;

/**
 * Reads the usage before and after some work, and every `interval` ms meanwhile. Throws what the work throws, and what the first look
 * throws; a later look that fails is left out.
 */
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
    const last = await lookAtAll(look, looks);
    if (last) looks.push(last);
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
    const one = await look().catch(() => undefined);
    if (one) looks.push(one);
  }
}

/** Tries again while a node is missing that was there before. Returns the best look, undefined if all have failed. */
async function lookAtAll(look: () => Promise<Look>, before: Look[]): Promise<Look | undefined> {
  const ids = idsOf(before);
  let best: Look | undefined;
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const one = await look().catch(() => undefined);
    if (one && one.nodes.length >= (best?.nodes.length ?? 0)) best = one;
    if (best && ids.every((id) => best!.nodes.some((node) => node.id === id))) break;
    await sleep(PAUSE);
  }
  return best;
}

const idsOf = (looks: Look[]) => [...new Set(looks.flatMap(({ nodes }) => nodes.map(({ id }) => id)))].sort();

/**
 * A counter that is looked at now and then. Its first value is where it begins, unless it is known to begin with 0; a value that is less
 * than one before is a measurement that has missed something, as of a process that ended just then, and adds nothing.
 */
class Counter {
  grown = 0;

  constructor(private most: number) {}

  add(value: number): void {
    this.grown += Math.max(0, value - this.most);
    this.most = Math.max(this.most, value);
  }
}

/** At least one look, in the order of time. A node that starts again counts from its start, one that comes later from when it was first seen. */
export function usageOf(looks: Look[]): Usage {
  const ids = idsOf(looks);
  const namespaces = namespacesOf(looks);
  const processes = new Map<string, Counter>();
  const interfaces = new Map<string, Counter>();
  const sumOf = (counters: Map<string, Counter>, isOf: (key: string) => boolean = () => true) =>
    [...counters].reduce((sum, [key, { grown }]) => sum + (isOf(key) ? grown : 0), 0);
  const peaks = new Map(ids.map((id) => [id, 0]));
  const trace: Usage['trace'] = [];
  const started = looks[0]!.at;
  let cpuBefore = 0;
  looks.forEach(({ at, nodes }, i) => {
    for (const { id, startedAt, cpuSeconds, memoryBytes } of nodes) {
      peaks.set(id, Math.max(peaks.get(id)!, memoryBytes));
      const key = `${id} ${startedAt}`;
      const isRestarted = [...processes.keys()].some((other) => other.startsWith(`${id} `));
      if (!processes.has(key)) processes.set(key, new Counter(isRestarted ? 0 : cpuSeconds));
      processes.get(key)!.add(cpuSeconds);
    }
    for (const [namespace, sent] of sentIn(nodes, namespaces)) {
      if (!interfaces.has(namespace)) interfaces.set(namespace, new Counter(sent));
      interfaces.get(namespace)!.add(sent);
    }
    const cpuNow = sumOf(processes);
    const seconds = at - (looks[i - 1]?.at ?? at);
    if (seconds > 0 && nodes.length > 0)
      trace.push({
        seconds: at - started,
        cores: (cpuNow - cpuBefore) / seconds / nodes.length,
        memoryBytes: nodes.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0) / nodes.length,
      });
    cpuBefore = cpuNow;
  });
  const [first, last] = [looks[0]!, looks.at(-1)!];
  const isIn = ({ nodes }: Look, id: string) => nodes.some((node) => node.id === id);
  return {
    seconds: last.at - started,
    cpuSeconds: sumOf(processes),
    includesChildren: looks.every(({ nodes }) => nodes.every((node) => node.includesChildren)),
    ...(namespaces.size > 0 && { sentBytes: sumOf(interfaces) }),
    nodes: ids.map((id) => {
      // A namespace of this node alone; a pod that was started again has another one.
      const own = [...namespaces].filter(([, nodes]) => nodes.size === 1 && nodes.has(id));
      return {
        id,
        cpuSeconds: sumOf(processes, (key) => key.startsWith(`${id} `)),
        ...(own.length > 0 && {
          sentBytes: sumOf(interfaces, (namespace) => own.some(([name]) => name === namespace)),
        }),
        peakMemoryBytes: peaks.get(id)!,
      };
    }),
    incomplete: ids.filter((id) => !isIn(first, id) || !isIn(last, id)),
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
