import type { TestCluster, TestNode } from '../cluster.js';

/** A change of the cluster. */
export interface Scenario {
  name: string;
  /** A short description for `--list`. */
  what: string;
  /** Runs while the fault acts; `node` is another node than that of the fault, if there is one. */
  begin(cluster: TestCluster, node: TestNode): Promise<void>;
  /** Runs after the fault has ended. */
  finish?(cluster: TestCluster, node: TestNode): Promise<void>;
}
