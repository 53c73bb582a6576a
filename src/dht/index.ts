export { Cluster, type ClusterOptions } from './cluster.js';
export { writeCheckpoint } from './commit/checkpoint.js';
export {
  changeCollection,
  fixCollection,
  readCollection,
  unfixCollection,
} from './commit/collection-schema.js';
export { CommitLog, type CommittedEntry } from './commit/commit-log.js';
export { Claim, claim, forgetDoneClaims, listClaims } from './commit/fenced-lock.js';
export * from './errors.js';
export { type MovedIn, type MoveInProgress, moveIn } from './import/import-folder.js';
export { holdingOf, SURVEY_PATH, type Survey } from './membership/cluster-stats.js';
export { Absences } from './membership/failure-detector.js';
export {
  listMembers,
  type Member,
  type MembersChange,
  Membership,
  type MembershipEvents,
  watchMembers,
} from './membership/membership.js';
export {
  type ClusterConfig,
  GREETING_PATH,
  type OpenCluster,
  openCluster,
  restoreCluster,
} from './open-cluster.js';
export {
  answeringOwners,
  emptyPlacement,
  locate,
  type Owner,
  type OwnerState,
  type Placement,
  slotsOfNode,
} from './placement/placement.js';
export {
  draining,
  joined,
  left,
  loaded,
  type NewNode,
  rebalanced,
  removed,
} from './placement/placement-changes.js';
export { formatPlacement, parsePlacement } from './placement/placement-codec.js';
export { type Amount, type Moves, movesBetween, sharesOf } from './placement/placement-diff.js';
export {
  readPlacement,
  type StoredPlacement,
  swapPlacement,
  watchPlacement,
} from './placement/placement-store.js';
export { slotsOfCells } from './placement/slot-lookup.js';
export { coveredSlots, everySlot } from './placement/slot-pruning.js';
export { SlotSet } from './placement/slot-set.js';
export { DEFAULT_PREFIX_LENGTHS, SLOTS, slotOf, slotOfScene } from './placement/slots.js';
export { enterCluster } from './recovery/cluster-document.js';
export { limitConnectTime } from './rpc/connect-timeout.js';
export { sign, verifySignature } from './rpc/message-signature.js';
export { CHECKSUM, MESSAGE_TYPE, type Peer, Peers } from './rpc/peer-client.js';
export { askForLines, LINES_TYPE, lineOf } from './rpc/peer-stream.js';
export {
  type Answers,
  type Asking,
  type Bounds,
  EVERYTHING,
  localOwners,
  type Owners,
  type QuestionKind,
  type Share as OwnerShare,
} from './scatter-gather/owner-queries.js';
export { routeTo, type Share } from './scatter-gather/query-router.js';
export { ClusterOwners, OWNERS_PATH, type OwnerRequest } from './scatter-gather/scatter-gather.js';
