/**
 * Copies the data folder of a single node into a cluster (`node join`). Invariant: a scene is copied completely in one commit or not at
 * all, and a second run changes nothing. Imports the folders `commit`, `placement`, `recovery` and `replication` and the parts `async`,
 * `coordination` (types), `grid` and `storage`.
 */
export { type ImportProgress, type ImportReport, importFolder } from './import-folder.js';
