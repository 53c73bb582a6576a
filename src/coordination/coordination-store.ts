/**
 * The state that the nodes of a cluster agree on: a small key-value store with revisions, in the terms of etcd (v3 API).
 *
 * - Keys and values are text. Keys are ordered by their UTF-8 bytes.
 * - A transaction that changes something gives the store its next **revision**. A key has the revision that created it
 *   and the one that last changed it; both are 0 for an absent key.
 * - Transactions are atomic, and every read sees a single revision.
 * - A key that is put under a **lease** is deleted when the lease ends.
 */

/** One key, or all keys from `key` (inclusive) to `end` (exclusive). */
export interface KeyRange {
  key: string;
  end?: string;
}

export interface KeyValue {
  key: string;
  value: string;
  /** The revision that created the key. A key that is deleted and put again gets a new one. */
  createRevision: number;
  /** The revision of the last put. */
  modRevision: number;
  /** The lease whose end deletes the key; '' for none. */
  lease: string;
}

/** The part of a key's state that its writer knows after a put. */
export type StoredValue = Omit<KeyValue, 'createRevision'>;

/** True if the key has this revision; 0 requires that the key is absent. */
export type RevisionCompare = { key: string; modRevision: number } | { key: string; createRevision: number };

export type Operation =
  | { op: 'put'; key: string; value: string; lease?: string }
  | ({ op: 'delete' } & KeyRange)
  | ({ op: 'get'; limit?: number } & KeyRange);

/**
 * If all comparisons are true, the operations in `success` are executed, otherwise those in `failure`. A transaction may write each key
 * once.
 */
export interface Transaction {
  compare?: RevisionCompare[];
  success: Operation[];
  failure?: Operation[];
}

/** The result of one `get`, in the order of the keys. */
export interface RangeResult {
  kvs: KeyValue[];
  /** True if `limit` cut off further keys. */
  more: boolean;
}

export interface TransactionResult {
  succeeded: boolean;
  /** Revision of the store after the transaction. */
  revision: number;
  /** One result for each executed `get`, in their order; a `get` sees the changes of the operations before it. */
  gets: RangeResult[];
}

export interface CallOptions {
  /** Maximum wait for the store, ms. */
  timeoutMs?: number;
}

export interface Watch {
  close(): void;
}

/** A notification of a watch. `start` means that the watch has (re)started, so changes may have been missed. */
export interface WatchSignal {
  reason: 'start' | 'change';
  /** Revision of the newest reported change, or of the store for `start`. */
  revision: number;
}

/**
 * All methods throw TW_DHT_COORDINATION_UNAVAILABLE if the store did not answer in time and nothing was written,
 * TW_DHT_COORDINATION_REFUSED and TW_DHT_COORDINATION_FULL. A store in a folder also throws TW_STORAGE_FULL or TW_STORAGE_IO if its
 * disk fails; only a restart shows whether that change was made, and until then the store accepts no changes.
 */
export interface CoordinationStore {
  /**
   * Throws TW_DHT_OUTCOME_UNKNOWN if the transaction was sent and no valid answer arrived. It may then still take effect later, so it
   * should compare something that it changes itself (see `retryUntilAnswered`). TW_DHT_LEASE_GONE if a put names a lease that has ended.
   */
  transact(transaction: Transaction, options?: CallOptions): Promise<TransactionResult>;
  /** Reads all ranges at one revision. A serializable read may be slightly stale, but works without a majority of the servers. */
  read(ranges: KeyRange[], options?: CallOptions & { serializable?: boolean }): Promise<TransactionResult>;
  /** Returns the id of a new lease that ends `ttl` seconds (at least 2) after its last renewal. */
  grantLease(ttl: number, options?: CallOptions): Promise<string>;
  /** Renews a lease; false if it does not exist any more. */
  keepAlive(lease: string, options?: CallOptions): Promise<boolean>;
  /** Ends a lease. It is not an error if the lease has already ended. */
  revokeLease(lease: string, options?: CallOptions): Promise<void>;
  /**
   * Calls `onSignal` when the watch has started, and after changes in the range. A signal only says that there may be a change, so the
   * caller must read the range again. A broken watch restarts by itself. `onError` gets TW_DHT_COORDINATION_REFUSED if the store
   * keeps refusing the watch: once, and again only if the watch was running in between.
   */
  watch(range: KeyRange, onSignal: (signal: WatchSignal) => void, onError?: (error: unknown) => void): Watch;
  /** Stops all watches and timers. Leases are left to expire. */
  close(): Promise<void>;
}

/** The range of all keys that begin with `prefix`, whose last character must be ASCII. */
export function prefixRange(prefix: string): Required<KeyRange> {
  return {
    key: prefix,
    end: prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1),
  };
}

/** The key `key`; undefined if it is absent. */
export async function readKey(
  store: CoordinationStore,
  key: string,
  options?: CallOptions & { serializable?: boolean },
): Promise<KeyValue | undefined> {
  return firstKeyValue((await store.read([{ key }], options)).gets[0]!);
}

/** The key of a `get` of a single key. */
export function firstKeyValue(result: RangeResult): KeyValue | undefined {
  return result.kvs[0];
}
