import { untilOwner } from '../await-recovery.js';
import type { Scenario } from './scenario.js';

export type { Scenario } from './scenario.js';

/** The list of M3's `dtest`, and a cluster that stays as it is. */
export const scenarios: Scenario[] = [
  {
    name: 'steady',
    what: 'no node joins or leaves',
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
    what: 'a node is stopped for good, so that the others take over its slots',
    async begin(cluster, node) {
      cluster.forget(node);
      await node.server.stop('SIGTERM');
    },
  },
  {
    name: 'replace-up',
    what: 'a node joins, and a running node drains and is stopped',
    async begin(cluster) {
      await cluster.addNode();
    },
    finish: (cluster, node) => cluster.drain(node),
  },
  {
    name: 'replace-down',
    what: 'a node dies for good, and another one joins instead',
    async begin(cluster, node) {
      cluster.forget(node);
      await node.server.stop('SIGKILL');
      await cluster.addNode();
    },
  },
  {
    name: 'drain',
    what: 'one of four nodes drains and is stopped',
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
    what: 'a node dies, and its machine restarts with an empty disk',
    async begin(cluster, node) {
      await node.server.stop('SIGKILL');
      await cluster.startEmpty(node);
    },
  },
  {
    name: 'restart',
    what: 'a node is stopped and restarted',
    async begin(_cluster, { server }) {
      await server.stop('SIGTERM');
      server.start();
    },
  },
];
