/**
 * The nodes of the cluster, the owners of slots and cells, and the messages between nodes. Invariant: messages are signed, and answers to
 * them have a checksum. Imports files of a folder above (types), the folders `http` and `schemas` and the parts `dht`, `grid` (types),
 * `jobs`, `metrics`, `query`, `storage` and `training` (types).
 */

export type { ClusterNode } from './cluster-nodes-response.js';
export { clusterRoutes } from './cluster-routes.js';
export type { ClusterUsage } from './cluster-usage-response.js';
