import type { TestCluster, TestNode } from '../cluster.js';
import type { Random } from '../random.js';

/** A fault. */
export interface Fault {
  name: string;
  /** A short description for `--list`. */
  what: string;
  /** Number of etcd servers that it needs; default 1. */
  etcdServers?: number;
  /** True if it needs a proxy between each node and each etcd server. */
  proxiesEtcd?: boolean;
  /** True if etcd has been in use before, so that its revisions are far from those of an empty one. */
  agesEtcd?: boolean;
  /** Size of a separate disk (a tmpfs) for the data folder of each node; needs the right to mount it. */
  diskMegabytes?: number;
  /** True if clients also train models and predict. */
  trains?: boolean;
  /** Additional latency of each store request of checkpoints and garbage collections, which run in any case, ms. */
  storeLatency?: number;
  /** True if it makes nothing unavailable, so that every answer must be complete as long as no node joins or leaves. */
  isHarmless?: boolean;
  /** Least and most time from the change of the scenario to the end of the fault, ms. Default: 4 to 9 s. */
  lastsMs?: [least: number, most: number];
  /** The reason why it is impossible on this machine; undefined if it is possible. */
  impossible?(): string | undefined;
  /** Starts it at a node, and returns the function that ends it. */
  begin(cluster: TestCluster, target: TestNode, random: Random): Promise<() => Promise<void>>;
}
