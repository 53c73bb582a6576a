/** Measures CPU time, memory and sent bytes of the nodes while a training runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeUsageDocument } from '../../client/index.js';

/** Returns the usage of the nodes that answer. */
export type ReadUsage = () => Promise<NodeUsageDocument[]>;

export interface Usage {
  /** From the first measurement to the last. */
  seconds: number;
  /** All nodes with their processes. */
  cpuSeconds: number;
  /** False if a node counts only the server process. CPU time and memory then do not include the training. */
  includesChildren: boolean;
  /** Sent by all nodes, each byte once; absent if no node counts them. */
  sentBytes?: number;
  nodes: { id: string; cpuSeconds: number; sentBytes?: number; peakMemoryBytes: number }[];
  /** Nodes that did not answer the first or the last measurement. Their usage is not known in full. */
  incomplete: string[];
  /** Means of the nodes: cores in use since the previous measurement, and memory. */
  trace: { seconds: number; cores: number; memoryBytes: number }[];
}

interface UsageSample {
  /** Seconds. */
  at: number;
  nodes: NodeUsageDocument[];
}

/** Attempts at the last measurement until all nodes answer. */
const MAX_ATTEMPTS = 10;
const RETRY_DELAY_MS = 300;

/**
 * Reads the usage before and after some work, and every `interval` ms in between. Throws the errors of the work and of the first
 * measurement. Later measurements that fail are left out.
 */
export async function measureUsage<T>(
  read: ReadUsage,
  interval: number,
  work: () => Promise<T>,
): Promise<{ result: T; usage: Usage }> {
  const sample = async (): Promise<UsageSample> => ({ nodes: await read(), at: performance.now() / 1e3 });
  const samples = [await sample()];
  const ended = new AbortController();
  const sampling = sampleRepeatedly(sample, interval, samples, ended.signal);
  try {
    const result = await work();
    ended.abort();
    await sampling;
    const last = await lastSample(sample, samples);
    if (last) samples.push(last);
    return { result, usage: usageFromSamples(samples) };
  } finally {
    ended.abort();
    await sampling;
  }
}

async function sampleRepeatedly(
  sample: () => Promise<UsageSample>,
  interval: number,
  samples: UsageSample[],
  signal: AbortSignal,
) {
  for (;;) {
    // It rejects only if the signal is aborted, and the next line checks the signal.
    await sleep(interval, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    // Counters are cumulative, so a failed measurement leaves only a gap in the curves.
    const one = await sample().catch(() => undefined);
    if (one) samples.push(one);
  }
}

/**
 * Repeats the measurement until all nodes of earlier samples answer. Returns the most complete sample; undefined if all attempts failed.
 */
async function lastSample(
  sample: () => Promise<UsageSample>,
  before: UsageSample[],
): Promise<UsageSample | undefined> {
  const ids = idsOf(before);
  let best: UsageSample | undefined;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    // The next attempt may succeed. If none does, the nodes are listed in `incomplete`.
    const one = await sample().catch(() => undefined);
    if (one && one.nodes.length >= (best?.nodes.length ?? 0)) best = one;
    if (best && ids.every((id) => best!.nodes.some((node) => node.id === id))) break;
    await sleep(RETRY_DELAY_MS);
  }
  return best;
}

const idsOf = (samples: UsageSample[]) =>
  [...new Set(samples.flatMap(({ nodes }) => nodes.map(({ id }) => id)))].sort();

/**
 * The growth of a counter that is read at intervals.
 * Invariant: `grown` is the difference between the highest value so far and the start value. A lower value is a reading that missed a
 * process that ended at that moment, and adds nothing.
 */
class MonotonicCounter {
  grown = 0;

  constructor(private most: number) {}

  add(value: number): void {
    this.grown += Math.max(0, value - this.most);
    this.most = Math.max(this.most, value);
  }
}

/**
 * Needs at least one sample, in the order of time. A restarted node counts from its start, and a node that appears later from its first
 * sample.
 */
export function usageFromSamples(samples: UsageSample[]): Usage {
  const ids = idsOf(samples);
  const namespaces = namespacesOf(samples);
  const processes = new Map<string, MonotonicCounter>();
  const interfaces = new Map<string, MonotonicCounter>();
  const sumOf = (counters: Map<string, MonotonicCounter>, isOf: (key: string) => boolean = () => true) =>
    [...counters].reduce((sum, [key, { grown }]) => sum + (isOf(key) ? grown : 0), 0);
  const peaks = new Map(ids.map((id) => [id, 0]));
  const trace: Usage['trace'] = [];
  const started = samples[0]!.at;
  let cpuBefore = 0;
  samples.forEach(({ at, nodes }, i) => {
    for (const { id, startedAt, cpuSeconds, memoryBytes } of nodes) {
      peaks.set(id, Math.max(peaks.get(id)!, memoryBytes));
      const key = `${id} ${startedAt}`;
      const isRestarted = [...processes.keys()].some((other) => other.startsWith(`${id} `));
      if (!processes.has(key)) processes.set(key, new MonotonicCounter(isRestarted ? 0 : cpuSeconds));
      processes.get(key)!.add(cpuSeconds);
    }
    for (const [namespace, sent] of sentIn(nodes, namespaces)) {
      if (!interfaces.has(namespace)) interfaces.set(namespace, new MonotonicCounter(sent));
      interfaces.get(namespace)!.add(sent);
    }
    const cpuNow = sumOf(processes);
    const seconds = at - (samples[i - 1]?.at ?? at);
    if (seconds > 0 && nodes.length > 0)
      trace.push({
        seconds: at - started,
        cores: (cpuNow - cpuBefore) / seconds / nodes.length,
        memoryBytes: nodes.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0) / nodes.length,
      });
    cpuBefore = cpuNow;
  });
  const [first, last] = [samples[0]!, samples.at(-1)!];
  const isIn = ({ nodes }: UsageSample, id: string) => nodes.some((node) => node.id === id);
  return {
    seconds: last.at - started,
    cpuSeconds: sumOf(processes),
    includesChildren: samples.every(({ nodes }) => nodes.every((node) => node.includesChildren)),
    ...(namespaces.size > 0 && { sentBytes: sumOf(interfaces) }),
    nodes: ids.map((id) => {
      // Namespaces that only this node uses. A restarted pod has another namespace.
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
function namespacesOf(samples: UsageSample[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { nodes } of samples)
    for (const { id, network } of nodes)
      if (network) found.set(network.namespace, (found.get(network.namespace) ?? new Set()).add(id));
  return found;
}

/**
 * Sent bytes by network namespace. Nodes that share a namespace share its interfaces, and send to each other over its loopback. For a
 * single node in a namespace, the loopback does not count.
 */
function sentIn(nodes: NodeUsageDocument[], namespaces: Map<string, Set<string>>): Map<string, number> {
  return new Map(
    nodes.flatMap(({ network }): [string, number][] => {
      if (!network) return [];
      const { namespace, sentBytes, loopbackBytes } = network;
      return [[namespace, sentBytes + (namespaces.get(namespace)!.size > 1 ? loopbackBytes : 0)]];
    }),
  );
}
