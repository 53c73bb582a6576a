/**
 * Makes many nodes one store: `Cluster` joins a node to the cluster, and `openCluster` builds it from the configuration. Invariant: a node
 * answers only for slots whose tiles it has loaded. Imports the parts `async`, `coordination`, `grid`, `metrics` (types) and `storage`.
 */
export { Cluster } from './cluster.js';
export * from './errors.js';
export { type ImportProgress, type ImportReport, importFolder } from './import.js';
export { FailureDetector, nodeStats, STATS_PATH } from './membership.js';
export { type ClusterConfig, type OpenCluster, openCluster, restoreCluster } from './open.js';
export {
  CHECKSUM_HEADER,
  encodeLine,
  HANDSHAKE_PATH,
  limitConnectTime,
  MESSAGE_TYPE,
  NDJSON_TYPE,
  type Peer,
  PeerClient,
  streamLines,
  TIME_HEADER,
} from './peers.js';
export { locate, type OwnerState, type Placement, readableOwners } from './placement.js';
export { type PlacementDiff, rebalance } from './placement-changes.js';
export { targetFractions } from './rebalancer.js';
export {
  localQueries,
  OWNER_QUERY_PATH,
  type OwnerQueries,
  type OwnerRequest,
  type QueryBounds,
  type QueryKind,
  type QueryScope as OwnerShare,
  ScatterGather,
  type ScatterQuery,
  WHOLE_INDEX,
} from './scatter-gather.js';
export { readSignedBody, Signatures } from './signatures.js';
export { ALL_SLOTS, cellSlotLookup, SLOTS, SlotSet } from './slots.js';
