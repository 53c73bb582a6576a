/** When a cluster is whole again. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CommitLog, EtcdStore } from '../../src/dht/index.js';
import { openObjectStore } from '../../src/storage/index.js';
import {
  type LoggedCommit,
  type SeenPlacement,
  soundLog,
  type Violation,
  wholePlacement,
} from './checkers.js';
import { askJson, until } from './client.js';
import { MOVE_LIMIT, type TestCluster, type TestNode } from './cluster.js';

interface PlacementAnswer {
  version: number;
  owners: number;
  slots: { node: string; state: string }[][];
}

export async function placementOf({ url, name }: TestNode): Promise<SeenPlacement> {
  return { ...(await askJson<PlacementAnswer>(url, '/cluster/placement', { patience: 5000 })), node: name };
}

/** What is wrong with the placement, and with who is known to run. */
export async function faultsOfPlacement(cluster: TestCluster): Promise<Violation[]> {
  const running = await Promise.all(cluster.nodes.map((node) => cluster.idOf(node)));
  return wholePlacement(await Promise.all(cluster.nodes.map(placementOf)), running);
}

/** Every slot has its owners, all of them ready, at all nodes alike; and all nodes are ready. */
export async function untilSettled(cluster: TestCluster, limit: number): Promise<void> {
  let last: Violation[] = [];
  await until('the placement is whole', limit, async () => {
    last = await faultsOfPlacement(cluster);
    return last.length === 0;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${last.map(({ detail }) => detail).join('; ')}`);
  });
  for (const { url, name } of cluster.nodes)
    await until(`${name} is ready`, limit, async () => {
      await askJson(url, '/ready', { patience: 5000 });
      return true;
    });
}

/** A node has got slots. */
export async function untilOwner(cluster: TestCluster, node: TestNode): Promise<void> {
  await until(`${node.name} has slots`, MOVE_LIMIT * cluster.slowness, async () => {
    const id = await cluster.idOf(node);
    const { slots } = await placementOf(node);
    return slots.some((owners) => owners.some((owner) => owner.node === id));
  });
}

/** The commit log as etcd has it, and whether the objects that it names are in the store. */
export async function faultsOfLog({ etcd, etcdName, store }: TestCluster): Promise<Violation[]> {
  const coordination = new EtcdStore(etcd.urls, etcdName);
  const objects = await openObjectStore(pathToFileURL(store).href);
  try {
    const log = new CommitLog(coordination);
    const checkpoint = (await log.readCheckpoint())?.seq ?? 0;
    const entries: LoggedCommit[] = [];
    let head = checkpoint;
    for (let isMore = true; isMore; ) {
      const page = await log.readSince(entries.at(-1)?.seq ?? checkpoint);
      head = page.head;
      if (page.kind !== 'entries') throw new Error('the log was cut while it was read');
      entries.push(...page.entries);
      isMore = page.more;
    }
    const violations = soundLog(checkpoint, head, entries);
    for (const { seq, segment } of entries)
      if (!(await objects.head(join('catalogue/segments', segment))))
        violations.push({
          rule: 'sound log',
          detail: `the segment of commit ${seq} is not in the store`,
          events: [],
        });
    return violations;
  } finally {
    objects.close();
    await coordination.close();
  }
}
