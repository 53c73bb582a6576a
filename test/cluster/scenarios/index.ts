import { untilOwner } from '../await-recovery.js';
import type { Scenario } from './scenario.js';

export type { Scenario } from './scenario.js';

/** The list of M3's `dtest`, and a cluster that stays as it is. */
export const scenarios: Scenario[] = [
  {
    name: 'steady',
    what: 'no node comes or goes',
    begin: async () => undefined,
  },
  {
    name: 'join',
    what: 'a node joins',
    async begin(cluster) {
      await cluster.addNode();
    },
  },
  {
    name: 'leave',
    what: 'a node is stopped and does not come back, so that the others take its slots',
    async begin(cluster, node) {
      cluster.forget(node);
      await node.server.stop('SIGTERM');
    },
  },
  {
    name: 'replace-up',
    what: 'a node joins, and a node that runs drains and is stopped',
    async begin(cluster) {
      await cluster.addNode();
    },
    finish: (cluster, node) => cluster.drain(node),
  },
  {
    name: 'replace-down',
    what: 'a node dies for good, and another joins in its place',
    async begin(cluster, node) {
      cluster.forget(node);
      await node.server.stop('SIGKILL');
      await cluster.addNode();
    },
  },
  {
    name: 'drain',
    what: 'of four nodes one drains and is stopped',
    async begin(cluster) {
      await cluster.addNode();
    },
    // A fault may keep the new node out: a node whose clock is minutes off is refused.
    async finish(cluster, node) {
      await untilOwner(cluster, cluster.nodes.at(-1)!);
      await cluster.drain(node);
    },
  },
  {
    name: 'empty-disk',
    what: 'a node dies, and its machine starts again with an empty disk',
    async begin(cluster, node) {
      await node.server.stop('SIGKILL');
      await cluster.startEmpty(node);
    },
  },
  {
    name: 'restart',
    what: 'a node is stopped and started again',
    async begin(_cluster, { server }) {
      await server.stop('SIGTERM');
      server.start();
    },
  },
];
