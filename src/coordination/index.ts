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
