/**
 * The nodes of the cluster, the owners of slots and cells, and the messages between nodes. Invariant: messages are signed, and answers to
 * them have a checksum. Imports `dht`, `jobs` and `training`.
 */
export { clusterRoutes } from './cluster-routes.js';
export type { ClusterUsage } from './cluster-usage-response.js';
