export { Cluster, type ClusterOptions } from './cluster.js';
export { writeLogCheckpoint } from './commit/checkpoint.js';
export {
  createSchemaIfAbsent,
  deleteSchema,
  readSchema,
  updateSchema,
} from './commit/collection-schema.js';
export { CommitLog, type CommittedEntry } from './commit/commit-log.js';
export { acquireLock, FencedLock, listLocks, pruneCommittedLocks } from './commit/fenced-lock.js';
export * from './errors.js';
export { type ImportProgress, type ImportReport, importFolder } from './import/import-folder.js';
export { type ClusterStats, nodeStats, STATS_PATH } from './membership/cluster-stats.js';
export { FailureDetector } from './membership/failure-detector.js';
export {
  listMembers,
  type Member,
  Membership,
  type MembershipEvents,
  watchMembers,
} from './membership/membership.js';
export {
  type ClusterConfig,
  type OpenCluster,
  openCluster,
  restoreCluster,
} from './open-cluster.js';
export {
  emptyPlacement,
  locate,
  type Owner,
  type OwnerState,
  type Placement,
  readableOwners,
  slotsOfNode,
} from './placement/placement.js';
export {
  addNode,
  drainNode,
  markAvailable,
  type NewNode,
  rebalance,
  releaseSlots,
  removeNode,
} from './placement/placement-changes.js';
export { decodePlacement, encodePlacement } from './placement/placement-codec.js';
export {
  type Amount,
  diffPlacements,
  type PlacementDiff,
  targetFractions,
} from './placement/placement-diff.js';
export {
  compareAndSwapPlacement,
  readPlacement,
  type StoredPlacement,
  watchPlacement,
} from './placement/placement-store.js';
export { cellSlotLookup } from './placement/slot-lookup.js';
export { ALL_SLOTS, candidateSlots } from './placement/slot-pruning.js';
export { SlotSet } from './placement/slot-set.js';
export { DEFAULT_PREFIX_LENGTHS, SLOTS, slotOf, slotOfScene } from './placement/slots.js';
export { verifyClusterDocument } from './recovery/cluster-document.js';
export { limitConnectTime } from './rpc/connect-timeout.js';
export { HANDSHAKE_PATH } from './rpc/handshake.js';
export { sign, verifySignature } from './rpc/message-signature.js';
export { CHECKSUM_HEADER, MESSAGE_TYPE, type Peer, PeerClient } from './rpc/peer-client.js';
export { encodeLine, NDJSON_TYPE, streamLines } from './rpc/peer-stream.js';
export {
  type GatheredAnswers,
  localQueries,
  type OwnerQueries,
  type QueryBounds,
  type QueryKind,
  type QueryScope as OwnerShare,
  type ScatterQuery,
  WHOLE_INDEX,
} from './scatter-gather/owner-queries.js';
export { type NodeSlots, routeQuery } from './scatter-gather/query-router.js';
export { OWNER_QUERY_PATH, type OwnerRequest, ScatterGather } from './scatter-gather/scatter-gather.js';
