/**
 * The state that the nodes of a cluster agree on: a small key-value store with revisions, in the terms of etcd (v3 API).
 *
 * - Keys and values are text. Keys are ordered by their UTF-8 bytes.
 * - A transaction that changes something gives the store its next **revision**. A key has the revision that created it
 *   and the one that last changed it; both are 0 for an absent key.
 * - Transactions are atomic, and every read sees a single revision.
 * - A key that is put under a **lease** is deleted when the lease ends.
 *
 * The functions below the interface read keys in pages, parse values, repeat attempts, and follow changes.
 */

import { backOff } from '../async/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import type { ClusterMetrics } from '../metrics/index.js';
import { parseJsonOr } from '../utils/json-text.js';
import { coordinationUnavailable, documentDamaged, leaseGone, outcomeUnknown } from './errors.js';

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

/**
 * Yields all keys that begin with `prefix`, in order, in pages of at most `limit`; with `from` and `to` those whose rest is from `from` to
 * before `to`. Each page is read at its own revision.
 */
export async function* scanPrefix(
  store: CoordinationStore,
  prefix: string,
  limit: number,
  { from = '', to }: { from?: string; to?: string } = {},
): AsyncGenerator<KeyValue[]> {
  const end = to === undefined ? prefixRange(prefix).end : prefix + to;
  for (let key: string | undefined = prefix + from; key !== undefined; ) {
    const { gets } = await store.transact({ success: [{ op: 'get', key, end, limit }] });
    const { kvs, more }: { kvs: KeyValue[]; more: boolean } = gets[0]!;
    yield kvs;
    key = more ? `${kvs.at(-1)!.key}\0` : undefined;
  }
}

/** Parses the value of a key as a JSON object with the fields `required`. TW_DHT_DOCUMENT_DAMAGED. */
export function parseJsonValue<T extends object>(
  { key, value }: Pick<KeyValue, 'key' | 'value'>,
  required: (keyof T & string)[],
): T {
  const document = parseJsonOr<T | null>(value, (cause) => documentDamaged.because(cause, key));
  if (typeof document === 'object' && document !== null && required.every((field) => field in document))
    return document;
  throw documentDamaged(key);
}

/**
 * Repeats `attempt` until the store has answered, for at most `timeoutMs`.
 *
 * The transaction of `attempt` must compare something that it changes, so that at most one attempt takes effect, even if an earlier one
 * reaches the store late. `uncertain` is true if the outcome of an earlier attempt is unknown; `attempt` must then check whether that
 * one was made. An answer also settles the earlier attempts; a refusal of a later attempt does not, and is thrown as
 * TW_DHT_OUTCOME_UNKNOWN. At the timeout: TW_DHT_OUTCOME_UNKNOWN if an attempt may still take effect, otherwise
 * TW_DHT_COORDINATION_UNAVAILABLE.
 */
export async function retryUntilAnswered<T>(
  timeoutMs: number,
  attempt: (timeoutMs: number, uncertain: boolean) => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let uncertain: TilewrightError | undefined;
  for (let attempts = 0; ; attempts++) {
    try {
      return await attempt(Math.max(0, deadline - performance.now()), uncertain !== undefined);
    } catch (error) {
      if (outcomeUnknown.is(error)) uncertain = error;
      else if (!coordinationUnavailable.is(error)) throw errorAfterUncertainAttempt(uncertain, error);
      if (performance.now() >= deadline) throw uncertain ?? error;
    }
    await backOff(attempts);
  }
}

/** The error for the caller if an attempt fails with `error` after an attempt with an unknown outcome. */
function errorAfterUncertainAttempt(uncertain: TilewrightError | undefined, error: unknown): unknown {
  // A key that was put under a lease does not outlive the lease.
  if (uncertain === undefined || leaseGone.is(error)) return error;
  const { code, status, message } = uncertain;
  return new TilewrightError(code, status, `${message}; the next attempt failed: ${messageOf(error)}`, {
    cause: error,
  });
}

interface CompareAndSet {
  key: string;
  /** Undefined deletes the key. */
  value: string | undefined;
  /** The required `modRevision` of the key; 0 requires that the key is absent. */
  revision: number;
  lease?: string;
}

const SET_TIMEOUT_MS = 10_000;

/**
 * Puts or deletes a key if it still has the given revision; `current` is its value afterwards. An attempt with an unknown outcome is
 * repeated. It counts as made if the key has the wanted value and lease, so values of different writers should differ or be
 * interchangeable. `set` can be false for a change that was made if another writer has replaced the value since.
 */
export function compareAndSet(
  store: CoordinationStore,
  { key, value, revision, lease = '' }: CompareAndSet,
  timeoutMs = SET_TIMEOUT_MS,
): Promise<{ set: boolean; current: StoredValue | undefined }> {
  return retryUntilAnswered(timeoutMs, async (left, uncertain) => {
    const result = await store.transact(
      {
        compare: [{ key, modRevision: revision }],
        success: [value === undefined ? { op: 'delete', key } : { op: 'put', key, value, lease }],
        failure: [{ op: 'get', key }],
      },
      { timeoutMs: left },
    );
    if (result.succeeded)
      return {
        set: true,
        current: value === undefined ? undefined : { key, value, lease, modRevision: result.revision },
      };
    const current = firstKeyValue(result.gets[0]!);
    const wasMade = uncertain && current?.value === value && (current?.lease ?? '') === lease;
    return { set: wasMade, current };
  });
}

const RETRY_DELAY_MS = 500;

/**
 * Calls `read` at the start and whenever something in the range has changed: one call at a time, and once more if the range changes
 * during a call. The argument is the newest change, or `start` if a change may have been missed. If `read` fails, `onError` gets the
 * error, and `read` is called again after RETRY_DELAY_MS. `onError` also gets the error of a watch that the store refuses.
 */
export function watchLoop(
  store: CoordinationStore,
  range: KeyRange,
  read: (signal: WatchSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Watch {
  let next: WatchSignal | undefined;
  let running = false;
  let closed = false;
  let retry: NodeJS.Timeout | undefined;

  const run = async (signal: WatchSignal) => {
    next = next?.reason === 'start' ? next : signal;
    if (running) return;
    running = true;
    while (next && !closed) {
      const current: WatchSignal = next;
      next = undefined;
      try {
        await read(current);
      } catch (error) {
        if (closed) break;
        clearTimeout(retry);
        retry = setTimeout(run, RETRY_DELAY_MS, { ...current, reason: 'start' }).unref();
        onError(error);
      }
    }
    running = false;
  };

  const watch = store.watch(range, run, onError);
  return {
    close() {
      closed = true;
      clearTimeout(retry);
      watch.close();
    },
  };
}

const MEASURED_CALLS = {
  transact: 'transact',
  read: 'read',
  grantLease: 'grant_lease',
  keepAlive: 'keep_alive',
  revokeLease: 'revoke_lease',
} as const;

/** A coordination store whose calls are measured; its watches are not. */
export const measuredKvStore = (store: CoordinationStore, calls: NonNullable<ClusterMetrics['etcd']>) =>
  calls.measured(store, MEASURED_CALLS);
