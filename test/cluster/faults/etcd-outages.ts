import { setTimeout as sleep } from 'node:timers/promises';
import type { TestCluster, TestNode } from '../cluster.js';
import { ETCD } from '../network/network.js';
import type { Random } from '../random.js';
import type { Fault } from './fault.js';

/** Lease of a membership, ms. */
const LEASE = 3000;

export const etcdOutages: Fault = {
  name: 'etcd-outages',
  what: 'etcd is away again and again, for 0.3 to 3 times the lease of a member: for one node, or for all',
  async begin(cluster, target, random) {
    const ending = new AbortController();
    const outages = repeat(cluster, target, random, ending.signal);
    return async () => {
      ending.abort();
      await outages;
    };
  },
};

async function repeat(
  cluster: TestCluster,
  target: TestNode,
  random: Random,
  signal: AbortSignal,
): Promise<void> {
  const { history } = cluster.settings;
  // The signal ends a wait; the loop checks it.
  const wait = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined);
  while (!signal.aborted) {
    const length = random.between(0.3, 3) * LEASE;
    const whose = random.pick(['one', 'all', 'hangs'] as const);
    history.note(
      `etcd is away for ${whose === 'one' ? target.name : 'all'} (${whose}), ${Math.round(length)} ms`,
    );
    const back = await begin(cluster, target, whose);
    await wait(length);
    await back();
    history.note('etcd is back');
    await wait(random.between(500, 3000));
  }
}

/** Starts an outage; returns the function that ends it. */
async function begin(
  { etcd, nodes, settings }: TestCluster,
  target: TestNode,
  whose: 'one' | 'all' | 'hangs',
): Promise<() => Promise<void>> {
  const { network } = settings;
  if (whose === 'hangs') {
    for (const member of etcd.members) await etcd.pause(member);
    return () => etcd.allUp();
  }
  for (const { place } of whose === 'one' ? [target] : [...nodes]) await network.cut(place.name, ETCD);
  return () => network.heal();
}
