/** Bytes that nodes in namespaces send and receive, as the kernel counts them at their interfaces. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { TrainingCluster } from './nodes.js';

const run = promisify(execFile);

export interface Counters {
  /** Seconds of this process's clock. */
  at: number;
  /** By each node. */
  sent: number[];
  /** By etcd. */
  etcd: number;
}

/** A client that is in a node's namespace reaches the node by the loopback there, which is not counted. */
export async function counters({ nodes, network }: TrainingCluster): Promise<Counters> {
  const file = (name: string) => `/sys/class/net/${name}/statistics/tx_bytes`;
  const sent = nodes.map(async ({ spot: { wrapper } }) => {
    const [program, ...args] = [...wrapper, 'cat', file('eth0')];
    return Number((await run(program!, args)).stdout);
  });
  return {
    at: performance.now() / 1e3,
    sent: await Promise.all(sent),
    etcd: Number(await readFile(file(network.bridge), 'utf8')),
  };
}

export interface Traffic {
  seconds: number;
  /** By each node, and by etcd. */
  sent: number[];
  etcd: number;
  /** All of that: each byte on the network once. */
  total: number;
}

export function between(before: Counters, after: Counters): Traffic {
  const sent = after.sent.map((bytes, i) => bytes - before.sent[i]!);
  const etcd = after.etcd - before.etcd;
  return {
    ...{ seconds: after.at - before.at, sent, etcd },
    total: sent.reduce((sum, bytes) => sum + bytes, etcd),
  };
}

/** While nothing is asked of the nodes: they tell each other and etcd that they live. */
export async function idleTraffic(cluster: TrainingCluster, seconds: number): Promise<Traffic> {
  const before = await counters(cluster);
  await sleep(1000 * seconds);
  return between(before, await counters(cluster));
}
