export * from './claims.js';
export { type ClusterDocument, enterCluster } from './cluster-document.js';
export {
  type CollectionKey,
  changeCollection,
  type FixedCollection,
  fixCollection,
  listCollections,
  readCollection,
  unfixCollection,
} from './collection-keys.js';
export * from './commit-log.js';
export type { EtcdLimits } from './coordination/etcd-check.js';
export { EtcdStore } from './coordination/etcd-store.js';
export { LevelStore } from './coordination/level-store.js';
export type { CoordinationStore, Watch } from './coordination/store.js';
export * from './errors.js';
export * from './membership.js';
export * from './placement-store.js';
