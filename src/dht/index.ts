export { Absences } from './absences.js';
export {
  draining,
  joined,
  left,
  loaded,
  type NewNode,
  rebalanced,
  removed,
  replaced,
  type SlotBytes,
} from './assign.js';
export { writeCheckpoint } from './checkpoint.js';
export * from './claims.js';
export { Cluster, type ClusterOptions } from './cluster.js';
export { type ClusterDocument, enterCluster } from './cluster-document.js';
export { ClusterOwners, OWNERS_PATH, type OwnerRequest } from './cluster-owners.js';
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
export { compareAndSet } from './coordination/compare-and-set.js';
export { documentOf } from './coordination/documents.js';
export type { EtcdLimits } from './coordination/etcd-check.js';
export { EtcdStore } from './coordination/etcd-store.js';
export { LevelStore } from './coordination/level-store.js';
export { pagesOf } from './coordination/pages.js';
export { settle } from './coordination/settle.js';
export { type CoordinationStore, type KeyValue, only, type Watch, withPrefix } from './coordination/store.js';
export { coveredSlots, everySlot } from './covered-slots.js';
export * from './errors.js';
export type { Histogram } from './histogram.js';
export * from './membership.js';
export { type MovedIn, type MoveInOptions, type MoveInProgress, moveIn } from './move-in.js';
export { type Amount, type Moves, movesBetween, type NodeMoves, sharesOf } from './moves.js';
export {
  type ClusterConfig,
  GREETING_PATH,
  type OpenCluster,
  openCluster,
  restoreCluster,
} from './open-cluster.js';
export {
  type Answering,
  type Answers,
  type Asking,
  type Bounds,
  EVERYTHING,
  localOwners,
  type Owners,
  type Share as OwnerShare,
} from './owners.js';
export { askForLines, LINES_TYPE, lineOf } from './peer-lines.js';
export { CHECKSUM, MESSAGE_TYPE, type Peer, Peers } from './peers.js';
export {
  answeringOwners,
  emptyPlacement,
  isTakenOver,
  locate,
  type Owner,
  type OwnerState,
  type Placement,
  type PlacementNode,
  slotsOfNode,
} from './placement.js';
export * from './placement-store.js';
export { formatPlacement, parsePlacement } from './placement-text.js';
export { Repeated } from './repeated.js';
export type { RestoreReport } from './restore.js';
export { type Route, routeTo, type Share } from './routing.js';
export { sign, verifySignature } from './signature.js';
export { SlotSet } from './slot-set.js';
export { slotTest } from './slot-test.js';
export { DEFAULT_PREFIX_LENGTHS, type PrefixLengths, SLOTS, slotOf, slotOfScene } from './slots.js';
export { type Holding, holdingOf, SURVEY_PATH, type Survey } from './survey.js';
