/**
 * What the nodes of a cluster agree on: a small key-value store with revisions, in the terms of etcd (v3 API).
 *
 * - Keys and values are text. Keys are in the order of their UTF-8 bytes.
 * - A transaction that changes something gives the whole store its next **revision**. A key has the revision that created it
 *   and the one that changed it last; of a key that is absent both are 0.
 * - A transaction is made as a whole or not at all, and so is every read: of one revision.
 * - A key that is put under a **lease** is deleted when the lease ends.
 */

/** One key, or all keys from `key` to before `end`. */
export interface KeyRange {
  key: string;
  end?: string;
}

export interface KeyValue {
  key: string;
  value: string;
  /** Revision that created the key; a key that was deleted and put again has a new one. */
  createRevision: number;
  /** Revision of the last put. */
  modRevision: number;
  /** The lease that it is deleted with; '' for none. */
  lease: string;
}

/** What is known of a key by who has put it. */
export type StoredValue = Omit<KeyValue, 'createRevision'>;

/** True where the revision of the key is this one; 0: the key is absent. */
export type RevisionCompare = { key: string; modRevision: number } | { key: string; createRevision: number };

export type Operation =
  | { op: 'put'; key: string; value: string; lease?: string }
  | ({ op: 'delete' } & KeyRange)
  | ({ op: 'get'; limit?: number } & KeyRange);

/** If all compares are true, `success` is done, otherwise `failure`. No key may be written twice by one transaction. */
export interface Transaction {
  compare?: RevisionCompare[];
  success: Operation[];
  failure?: Operation[];
}

/** What one `get` has found, in the order of keys. */
export interface RangeResult {
  kvs: KeyValue[];
  /** Whether its limit has left some out. */
  more: boolean;
}

export interface TransactionResult {
  succeeded: boolean;
  /** Of the store after the transaction. */
  revision: number;
  /** Of each `get` that was done, in their order; they see what the operations before them have done. */
  gets: RangeResult[];
}

export interface CallOptions {
  /** How long the store is waited for, ms. */
  timeoutMs?: number;
}

export interface Watch {
  close(): void;
}

/** Why a watch wakes: `start` after it has begun or begun anew, so that changes may have been missed. */
export interface WatchSignal {
  reason: 'start' | 'change';
  /** Of the newest change that it tells of; at the start that of the store. */
  revision: number;
}

/**
 * Errors of all: TW_DHT_COORDINATION_UNAVAILABLE where the store did not answer in time and nothing was written;
 * TW_DHT_COORDINATION_REFUSED, TW_DHT_COORDINATION_FULL. In addition, a store in a folder throws TW_STORAGE_FULL or TW_STORAGE_IO if its
 * disk fails: whether that change was made shows only after a restart, and until then the store accepts no changes.
 */
export interface CoordinationStore {
  /**
   * TW_DHT_OUTCOME_UNKNOWN if it was sent and no answer arrived, or an answer that is not of the store. It may then be made still later, so it should compare
   * something that it changes itself (see `settle`). TW_DHT_LEASE_GONE where a put names a lease that has ended.
   */
  transact(transaction: Transaction, waiting?: CallOptions): Promise<TransactionResult>;
  /** Of one revision. A serializable read may be a little old, and is answered where most servers are away, too. */
  read(ranges: KeyRange[], options?: CallOptions & { serializable?: boolean }): Promise<TransactionResult>;
  /** Id of a new lease that ends `ttl` seconds (at least 2) after it was last kept alive. */
  grantLease(ttl: number, waiting?: CallOptions): Promise<string>;
  /** Whether the lease is there still. */
  keepAlive(lease: string, waiting?: CallOptions): Promise<boolean>;
  /** Ends a lease; one that has ended already is no error. */
  revokeLease(lease: string, waiting?: CallOptions): Promise<void>;
  /**
   * Calls `wake` when the watch has begun, and after changes in the range. It tells only that there may be something new:
   * a woken reader reads again. A watch that breaks begins again by itself. `failed` gets TW_DHT_COORDINATION_REFUSED if the store
   * keeps refusing the watch: once, and again only after the watch has begun in the meantime.
   */
  watch(range: KeyRange, wake: (wake: WatchSignal) => void, failed?: (error: unknown) => void): Watch;
  /** Ends its watches and timers. Leases end by themselves. */
  close(): Promise<void>;
}

/** All keys that begin with `prefix`, which ends with an ASCII character. */
export function prefixRange(prefix: string): Required<KeyRange> {
  return {
    key: prefix,
    end: prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1),
  };
}

/** The value of a `get` of one key. */
export function firstKeyValue(result: RangeResult): KeyValue | undefined {
  return result.kvs[0];
}
