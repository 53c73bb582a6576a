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
export { coveredSlots, everySlot } from './covered-slots.js';
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
export { DEFAULT_PREFIX_LENGTHS, type PrefixLengths, SLOTS, slotOf, slotOfScene } from './slots.js';
