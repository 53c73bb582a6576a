/**
 * Copies the data folder of a single node into a cluster (`node join`). Invariant: a scene is copied completely in one commit or not at
 * all, and a second run changes nothing. Imports `async`, `grid`, `storage`, `coordination`, `dht/commit`, `dht/placement`,
 * `dht/recovery` and `dht/replication`.
 */
export { type ImportProgress, type ImportReport, importFolder } from './import-folder.js';
