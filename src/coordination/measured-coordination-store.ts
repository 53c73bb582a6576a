import type { ClusterMetrics } from '../metrics/index.js';
import type { CoordinationStore } from './coordination-store.js';

const OPERATIONS = {
  transact: 'transact',
  read: 'read',
  grantLease: 'grant_lease',
  keepAlive: 'keep_alive',
  revokeLease: 'revoke_lease',
} as const;

/** A coordination store whose calls are measured; its watches are not. */
export const measuredKvStore = (store: CoordinationStore, calls: NonNullable<ClusterMetrics['etcd']>) =>
  calls.measured(store, OPERATIONS);
