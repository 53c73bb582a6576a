/**
 * Which nodes are alive, and what each of them reports. Invariant: a node id belongs to one process at a time, because its key is bound to
 * the lease of that process. Imports the folders `placement` and `rpc` (types) and the parts `async`, `coordination` and `storage` (types).
 */

export { FailureDetector } from './failure-detector.js';
export { Heartbeat, requireNoHeartbeats } from './heartbeat.js';
export { type ClusterStats, nodeStats, STATS_PATH, StatsCollector } from './member-stats.js';
export { listMembers, type Member, Membership, watchMembers } from './membership.js';
