import { symlink, unlink } from 'node:fs/promises';
import type { TestCluster, TestNode } from '../cluster.js';
import type { Random } from '../random.js';
import type { Fault } from './fault.js';

/** One node, or all nodes. */
function hit({ nodes, settings }: TestCluster, target: TestNode, random: Random): TestNode[] {
  const isAll = random.chance(0.5);
  settings.history.note(`the store is unreachable for ${isAll ? 'all' : target.name}`);
  return isAll ? [...nodes] : [target];
}

export const storeAway: Fault = {
  name: 'store-away',
  what: 'the store is not mounted any more, at a node or at all',
  async begin(cluster, target, random) {
    const nodes = hit(cluster, target, random);
    for (const { mount } of nodes) await unlink(mount);
    return async () => {
      for (const { mount } of nodes) await symlink(cluster.store, mount);
    };
  },
};

export const storeHangs: Fault = {
  name: 'store-hangs',
  what: 'the store does not answer, as a mount of NFS whose server is away, at a node or at all',
  async begin(cluster, target, random) {
    const nodes = hit(cluster, target, random);
    for (const { server, mount } of nodes) server.disturb({ disk: { under: mount, delay: 0, hangs: true } });
    return async () => {
      for (const { server } of nodes) server.disturb({});
    };
  },
};
