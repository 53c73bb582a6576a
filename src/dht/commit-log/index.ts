/**
 * The way of a write into the log: fenced locks, segments, the commit log, its archive in the object store, and checkpoints. Invariant: one
 * transaction writes an entry, the head of the log and the mark on the lock, so a commit is made once or not at all. Imports the folder
 * `placement` and the parts `async`, `coordination`, `metrics` (types) and `storage`.
 */

export {
  CHECKPOINT_COMMITS,
  CommitLog,
  type CommittedEntry,
  entryPut,
  headAndCheckpointPuts,
  type StoredCheckpoint,
} from './commit-log.js';
export { archivedEntryName, listArchived, readArchived } from './commit-log-archive.js';
export {
  entriesSince,
  MANIFESTS_FOLDER,
  type Manifest,
  PART_COUNT,
  PARTS_FOLDER,
  partOf,
  readManifest,
  readParts,
  segmentName,
  seqOfObject,
  writeLogCheckpoint,
} from './commit-log-checkpoint.js';
export { type CollectionSchema, schemaKey } from './commit-log-collection-schema.js';
export {
  acquireLock,
  isOwnedBy,
  listLocks,
  ownerLabel,
  pruneCommittedLocks,
  revokeLocksOf,
} from './commit-log-fenced-lock.js';
export { ClusterLockManager } from './commit-log-lock-manager.js';
export { readSegment } from './commit-log-segment.js';
export { RecordState } from './commit-log-state.js';
