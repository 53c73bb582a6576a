export { Absences } from './absences.js';
export {
  draining,
  joined,
  left,
  loaded,
  type NewNode,
  rebalanced,
  removed,
} from './assign.js';
export { writeCheckpoint } from './checkpoint.js';
export { Claim, claim, forgetDoneClaims, listClaims } from './claims.js';
export { Cluster, type ClusterOptions } from './cluster.js';
export { enterCluster } from './cluster-document.js';
export { ClusterOwners, OWNERS_PATH, type OwnerRequest } from './cluster-owners.js';
export {
  changeCollection,
  fixCollection,
  readCollection,
  unfixCollection,
} from './collection-keys.js';
export { CommitLog, type CommittedEntry } from './commit-log.js';
export { limitConnectTime } from './connect-timeout.js';
export { compareAndSet } from './coordination/compare-and-set.js';
export { documentOf } from './coordination/documents.js';
export { EtcdStore } from './coordination/etcd-store.js';
export { LevelStore } from './coordination/level-store.js';
export { pagesOf } from './coordination/pages.js';
export { settle } from './coordination/settle.js';
export {
  type CoordinationStore,
  type KeyValue,
  only,
  type PutValue,
  withPrefix,
} from './coordination/store.js';
export { coveredSlots, everySlot } from './covered-slots.js';
export * from './errors.js';
export type { Histogram } from './histogram.js';
export {
  listMembers,
  type Member,
  type MembersChange,
  Membership,
  type MembershipEvents,
  watchMembers,
} from './membership.js';
export { type MovedIn, type MoveInProgress, moveIn } from './move-in.js';
export { type Amount, type Moves, movesBetween, sharesOf } from './moves.js';
export {
  type ClusterConfig,
  GREETING_PATH,
  type OpenCluster,
  openCluster,
  restoreCluster,
} from './open-cluster.js';
export {
  type Answers,
  type Asking,
  type Bounds,
  EVERYTHING,
  localOwners,
  type Owners,
  type QuestionKind,
  type Share as OwnerShare,
} from './owners.js';
export { askForLines, LINES_TYPE, lineOf } from './peer-lines.js';
export { CHECKSUM, MESSAGE_TYPE, type Peer, Peers } from './peers.js';
export {
  answeringOwners,
  emptyPlacement,
  locate,
  type Owner,
  type OwnerState,
  type Placement,
  slotsOfNode,
} from './placement.js';
export { readPlacement, type StoredPlacement, swapPlacement, watchPlacement } from './placement-store.js';
export { formatPlacement, parsePlacement } from './placement-text.js';
export { Repeated } from './repeated.js';
export { routeTo, type Share } from './routing.js';
export { sign, verifySignature } from './signature.js';
export { SlotSet } from './slot-set.js';
export { DEFAULT_PREFIX_LENGTHS, SLOTS, slotOf, slotOfScene } from './slots.js';
export { slotsOfCells } from './slots-of-cells.js';
export { holdingOf, SURVEY_PATH, type Survey } from './survey.js';
