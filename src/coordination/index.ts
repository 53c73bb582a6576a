/**
 * A small replicated key-value store with revisions, transactions, leases and watches: etcd for a cluster, LevelDB for a single process.
 * Invariant: a transaction compares what it changes, so a repeated attempt takes effect at most once. Imports `async` and `storage` (LevelDB
 * writer, durable files); knows nothing of slots or jobs.
 */
export { compareAndSet } from './compare-and-set.js';
export * from './errors.js';
export { EtcdStore } from './etcd/etcd-kv-store.js';
export { documentOf } from './json-value.js';
export {
  type CoordinationStore,
  type KeyValue,
  type Operation,
  only,
  type PutValue,
  type RangeResult,
  type Transaction,
  type Wake,
  type Watch,
  withPrefix,
} from './kv-store.js';
export { KeptLease } from './lease.js';
export { LevelStore } from './level-kv-store.js';
export { pagesOf } from './prefix-scan.js';
export { settle } from './retry-until-answered.js';
export { follow } from './watch-loop.js';
