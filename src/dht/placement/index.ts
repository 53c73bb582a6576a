/**
 * Which node owns which slot, and how ownership changes when nodes join, drain or leave. Invariant: every node computes the same result
 * from the same document, and versions of the document only grow. All files except `placement-store` and `placement-manager` are pure.
 * Imports the parts `coordination`, `grid` and `storage`.
 */

export {
  emptyPlacement,
  isHandoverComplete,
  locate,
  type Owner,
  type OwnerState,
  type Placement,
  readableOwners,
  slotsOfNode,
} from './placement.js';
export {
  addNode,
  drainNode,
  markAvailable,
  rebalance,
  releaseSlots,
  removeNode,
} from './placement-changes.js';
export { decodePlacement, encodePlacement } from './placement-codec.js';
export { diffPlacements, type PlacementDiff, targetFractions } from './placement-diff.js';
export { MIN_UPDATE_INTERVAL_MS, PlacementManager } from './placement-manager.js';
export { ALL_SLOTS, candidateSlots } from './placement-slot-pruning.js';
export { watchPlacement } from './placement-store.js';
export { bytesBySlot, cellSlotLookup, slotTest } from './slot-lookup.js';
export { SlotSet } from './slot-set.js';
export {
  DEFAULT_PREFIX_LENGTHS,
  type PrefixLengths,
  SLOTS,
  slotOf,
  slotOfCell,
  slotOfScene,
} from './slots.js';
