/**
 * A small replicated key-value store with revisions, transactions, leases and watches: etcd for a cluster, LevelDB for a single process.
 * Invariant: a transaction compares something that it changes, so a repeated attempt takes effect at most once. Knows nothing of slots or
 * jobs. Imports the parts `async`, `metrics` (types) and `storage`.
 */

export * from './errors.js';
export { EtcdStore } from './etcd-store.js';
export { Lease } from './lease.js';
export { FolderCoordination, LevelStore, openFolderStore } from './level-store.js';
export {
  type CoordinationStore,
  compareAndSet,
  firstKeyValue,
  type KeyValue,
  measuredKvStore,
  type Operation,
  parseJsonValue,
  prefixRange,
  type RangeResult,
  readKey,
  retryUntilAnswered,
  type StoredValue,
  scanPrefix,
  type Transaction,
  type Watch,
  type WatchSignal,
  watchLoop,
} from './store.js';
