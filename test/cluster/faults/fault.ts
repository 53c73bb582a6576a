import type { TestCluster, TestNode } from '../cluster.js';
import type { Random } from '../random.js';

/** What goes wrong. */
export interface Fault {
  name: string;
  /** In a few words, for `--list`. */
  what: string;
  /** etcd's servers that it needs; 1 if not said. */
  etcdServers?: number;
  /** Begins it at a node, and returns what ends it. */
  begin(cluster: TestCluster, target: TestNode, random: Random): Promise<() => Promise<void>>;
}
