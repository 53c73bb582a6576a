/**
 * A small replicated key-value store with revisions, transactions, leases and watches: etcd for a cluster, LevelDB for a single process.
 * Invariant: a transaction compares something that it changes, so a repeated attempt takes effect at most once. Knows nothing of slots or
 * jobs. Imports the parts `async`, `metrics` (types) and `storage`.
 */

export { compareAndSet } from './compare-and-set.js';
export { parseJsonValue } from './coordination-json-value.js';
export { scanPrefix } from './coordination-prefix-scan.js';
export { retryUntilAnswered } from './coordination-retry.js';
export {
  type CoordinationStore,
  firstKeyValue,
  type KeyValue,
  type Operation,
  prefixRange,
  type RangeResult,
  readKey,
  type StoredValue,
  type Transaction,
  type Watch,
  type WatchSignal,
} from './coordination-store.js';
export { watchLoop } from './coordination-watch-loop.js';
export * from './errors.js';
export { EtcdStore } from './etcd/index.js';
export { FolderCoordination, openFolderStore } from './folder-coordination.js';
export { Lease } from './lease.js';
export { LevelStore } from './level-coordination-store.js';
export { measuredKvStore } from './measured-coordination-store.js';
