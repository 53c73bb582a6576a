/**
 * The way of a write into the log: fenced locks, segments, the commit log, its archive in the object store, and checkpoints. Invariant: one
 * transaction writes an entry, the head of the log and the mark on the lock, so a commit is made once or not at all. Imports the folder
 * `placement` and the parts `async`, `coordination`, `metrics` (types) and `storage`.
 */

export { type CollectionSchema, schemaKey } from './collection-schema.js';
export { archivedEntryName, listArchived, readArchived } from './commit-archive.js';
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
} from './commit-checkpoint.js';
export { ClusterLockManager } from './commit-lock-manager.js';
export {
  CHECKPOINT_COMMITS,
  CommitLog,
  type CommittedEntry,
  entryPut,
  headAndCheckpointPuts,
  type StoredCheckpoint,
} from './commit-log.js';
export { readSegment } from './commit-segment.js';
export { RecordState } from './commit-state.js';
export {
  acquireLock,
  isOwnedBy,
  listLocks,
  ownerLabel,
  pruneCommittedLocks,
  revokeLocksOf,
} from './fenced-commit-lock.js';
