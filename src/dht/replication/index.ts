/**
 * The background work of a node: it follows the log, loads and drops slots, writes checkpoints, and collects garbage in the object store.
 * Invariant: between two steps, the data folder contains exactly the tiles of its slots as of one commit. Imports the folders `commit`,
 * `membership`, `placement` and `recovery` and the parts `async`, `coordination` (types), `metrics` (types) and `storage`.
 */

export { Replica } from './replica.js';
export { SlotReconciler } from './replica-slot-reconciler.js';
export type { ObjectGcContext, ObjectGcReport } from './replicated-object-gc.js';
export { Maintenance } from './replication-maintenance.js';
