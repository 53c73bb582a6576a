/** Waits until a cluster has recovered. */
import { type SeenPlacement, type Violation, wholePlacement } from './checkers.js';
import { askJson, until } from './client.js';
import { MOVE_LIMIT, type TestCluster, type TestNode } from './cluster.js';

interface PlacementAnswer {
  version: number;
  owners: number;
  slots: { node: string; state: string }[][];
}

export async function placementOf({ url, name }: TestNode): Promise<SeenPlacement> {
  return { ...(await askJson<PlacementAnswer>(url, '/cluster/placement', { timeoutMs: 5000 })), node: name };
}

/** Faults of the placement, and of the known members. */
export async function problemsOfPlacement(cluster: TestCluster): Promise<Violation[]> {
  const running = await Promise.all(cluster.nodes.map((node) => cluster.idOf(node)));
  return wholePlacement(await Promise.all(cluster.nodes.map(placementOf)), running);
}

/** Every slot has its owners, all of them available, according to every node; and all nodes are ready. */
export async function awaitRecovery(cluster: TestCluster, limit: number): Promise<void> {
  let last: Violation[] = [];
  await until('the placement is complete', limit, async () => {
    last = await problemsOfPlacement(cluster);
    return last.length === 0;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${last.map(({ detail }) => detail).join('; ')}`);
  });
  for (const { url, name } of cluster.nodes)
    await until(`${name} is ready`, limit, async () => {
      await askJson(url, '/ready', { timeoutMs: 5000 });
      return true;
    });
}

/** Waits until a node owns slots. */
export async function untilOwner(cluster: TestCluster, node: TestNode): Promise<void> {
  await until(`${node.name} has slots`, MOVE_LIMIT * cluster.slowness, async () => {
    const id = await cluster.idOf(node);
    const { slots } = await placementOf(node);
    return slots.some((owners) => owners.some((owner) => owner.node === id));
  });
}
