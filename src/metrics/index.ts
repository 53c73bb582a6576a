/**
 * Metrics of a node, which its parts fill and the API exports. Invariants: each node has a registry of its own; the values of labels come
 * from fixed sets or from the nodes of a cluster, so their number is bounded; after `close` no timer and no observer is left. Imports no
 * other folder.
 */
export { CallMetrics, type ClusterMetrics, type IngestMetrics, NodeMetrics, Snapshot } from './node.js';
export { type ProcessUsage, processUsage } from './usage.js';
