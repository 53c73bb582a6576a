/** The network between nodes and etcd. */

/** The position of a node in the network. */
export interface Place {
  name: string;
  host: string;
  port: number;
  /** The address at which other nodes reach it. */
  advertised: string;
  /** The addresses at which it reaches etcd. */
  etcd: string[];
  /** Words before the command of its process. */
  wrapper: string[];
  env: Record<string, string>;
}

export const ETCD = 'etcd';

/** Clients reach every node, even if it is cut off. */
export interface Network {
  readonly kind: string;
  /** The address on which the etcd servers listen. */
  readonly etcdHost: string;
  addNode(name: string, etcd: string[]): Promise<Place>;
  /** From now on, all bytes between two nodes, or a node and `ETCD`, are lost in both directions; connections stay open. */
  cut(a: string, b: string): Promise<void>;
  /** Removes all cuts. */
  heal(): Promise<void>;
  close(): Promise<void>;
}
