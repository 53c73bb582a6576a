/**
 * The identity of a cluster: which coordination store belongs to an object store, and how a lost etcd is rebuilt from the object store.
 * Invariant: only one coordination store is valid for an object store, and each restore starts a new epoch. Imports `async`,
 * `coordination`, `storage`, `dht/commit`, `dht/placement` and `dht/membership`.
 */
export { verifyClusterDocument } from './cluster-document.js';
export {
  openClusterIdentity,
  openExistingCluster,
  readIdentity,
  requireLogCoversStore,
} from './cluster-identity.js';
export { epochNumber, readEpoch } from './restore-epoch.js';
export { type RestoreOptions, type RestoreReport, restoreCoordination } from './restore-etcd.js';
