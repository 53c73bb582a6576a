/**
 * The routes, one folder for each group. Invariant: a route validates its input by a schema, and leaves everything that is not HTTP to the
 * services of the node. Imports files of a folder above (types), the folders `http`, `plugins` and `schemas` and the parts `async`, `dht`,
 * `expressions`, `grid`, `html`, `hyperspectral`, `imagery`, `ingest`, `jobs`, `metrics`, `query`, `raster` (types), `remote`,
 * `storage`, `subscriptions` and `training`.
 */
export { ROUTE_GROUPS } from './route-groups.js';
