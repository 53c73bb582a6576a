import type { TestCluster, TestNode } from '../cluster.js';

/** How the cluster changes. */
export interface Scenario {
  name: string;
  /** In a few words, for `--list`. */
  what: string;
  /** While the fault acts; `node` is not the one that it acts at, where there is another. */
  begin(cluster: TestCluster, node: TestNode): Promise<void>;
  /** After the fault has ended. */
  finish?(cluster: TestCluster, node: TestNode): Promise<void>;
}
