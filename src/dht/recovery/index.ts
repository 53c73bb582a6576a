/**
 * The identity of a cluster: which coordination store belongs to an object store, and how a lost etcd is rebuilt from the object store.
 * Invariant: only one coordination store is valid for an object store, and each restore starts a new epoch. Imports the folders `commit`,
 * `membership` and `placement` and the parts `async`, `coordination` and `storage`.
 */

export { epochNumber, readEpoch } from './recovery-epoch.js';
export { type RestoreOptions, type RestoreReport, restoreCoordination } from './recovery-etcd-keys.js';
export {
  openClusterIdentity,
  openExistingCluster,
  readIdentity,
  requireLogCoversStore,
} from './recovery-identity.js';
