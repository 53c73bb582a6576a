/** What lies between nodes and etcd. */

/** Where a node is. */
export interface Place {
  name: string;
  host: string;
  port: number;
  /** Where the other nodes reach it. */
  advertised: string;
  /** How it reaches etcd. */
  etcd: string[];
  /** Words before the command of its process. */
  wrapper: string[];
  env: Record<string, string>;
}

export const ETCD = 'etcd';

/** Clients reach every node, cut off or not. */
export interface Network {
  readonly kind: string;
  /** Address on which etcd's servers listen. */
  readonly etcdHost: string;
  addNode(name: string, etcd: string[]): Promise<Place>;
  /** Bytes between two nodes, or a node and `ETCD`, are lost from now on, in both directions; connections do not end by it. */
  cut(a: string, b: string): Promise<void>;
  /** All is connected again. */
  heal(): Promise<void>;
  close(): Promise<void>;
}
