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
export { Cluster, type ClusterOptions } from './cluster.js';
export { LevelStore } from './coordination/level-store.js';
export type { CoordinationStore } from './coordination/store.js';
export { coveredSlots, everySlot } from './covered-slots.js';
export { notHeld } from './errors.js';
export type { Member } from './membership.js';
export { type ClusterConfig, type OpenCluster, openCluster } from './open-cluster.js';
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
export { formatPlacement, parsePlacement } from './placement-text.js';
export { type Route, routeTo, type Share } from './routing.js';
export { verifySignature } from './signature.js';
export { SlotSet } from './slot-set.js';
export { slotTest } from './slot-test.js';
export { DEFAULT_PREFIX_LENGTHS, type PrefixLengths, SLOTS, slotOf, slotOfScene } from './slots.js';
