/**
 * A small replicated key-value store with revisions, transactions, leases and watches: etcd for a cluster, LevelDB for a single process.
 * Invariant: a transaction compares something that it changes, so a repeated attempt takes effect at most once. Knows nothing of slots or
 * jobs. Imports the parts `async`, `metrics` (types) and `storage`.
 */

export * from './errors.js';
export { EtcdStore } from './etcd/index.js';
export { compareAndSet } from './kv-compare-and-set.js';
export { parseJsonValue } from './kv-json-value.js';
export { Lease } from './kv-lease.js';
export { scanPrefix } from './kv-prefix-scan.js';
export { retryUntilAnswered } from './kv-retry-until-answered.js';
export {
  type CoordinationStore,
  firstKeyValue,
  type KeyValue,
  type Operation,
  prefixRange,
  type RangeResult,
  type StoredValue,
  type Transaction,
  type Watch,
  type WatchSignal,
} from './kv-store.js';
export { watchLoop } from './kv-watch-loop.js';
export { LevelStore } from './level-kv-store.js';
export { MeasuredKvStore } from './measured-kv-store.js';
