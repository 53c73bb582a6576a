import type { TestCluster, TestNode } from '../cluster.js';
import type { Random } from '../random.js';

/** What goes wrong. */
export interface Fault {
  name: string;
  /** In a few words, for `--list`. */
  what: string;
  /** etcd's servers that it needs; 1 if not said. */
  etcdServers?: number;
  /** A proxy stands between each node and each etcd server. */
  proxiesEtcd?: boolean;
  /** etcd has been in use before, so that its revisions are far from those of an empty one. */
  agesEtcd?: boolean;
  /** The data folder of each node is on a disk of its own of this size, a tmpfs; it takes the right to mount one. */
  diskMegabytes?: number;
  /** Clients train models and predict as well. */
  trains?: boolean;
  /** Checkpoints and sweeps run in any case, and each request of theirs to the store takes so much longer, ms. */
  storeLatency?: number;
  /** It takes nothing away, so that every answer must be whole as long as no node comes or goes. */
  isHarmless?: boolean;
  /** Why it cannot be made on this machine; undefined if it can. */
  impossible?(): string | undefined;
  /** Begins it at a node, and returns what ends it. */
  begin(cluster: TestCluster, target: TestNode, random: Random): Promise<() => Promise<void>>;
}
