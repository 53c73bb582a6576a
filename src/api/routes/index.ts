/**
 * The routes, one folder for each group. Invariant: a route validates its input by a schema, and leaves everything that is not HTTP to the
 * services of the node. Imports files of a folder above (types), the folders `http`, `plugins` and `schemas` and the parts `async`, `dht`,
 * `expressions`, `grid`, `html`, `hyperspectral`, `imagery`, `ingest`, `jobs`, `metrics`, `query`, `raster` (types), `storage` and
 * `training`.
 */
export { clusterRoutes } from './cluster/index.js';
export { docsPageRoutes } from './docs-page/index.js';
export { ingestRoutes } from './ingest/index.js';
export { mapPageRoutes } from './map-page/index.js';
export { mapRoutes, seriesRoutes } from './maps/index.js';
export { modelRoutes } from './models/index.js';
export { operationRoutes } from './operations/index.js';
export { processRoutes } from './processes/index.js';
export { sceneRoutes } from './scenes/index.js';
export { similarRoutes } from './similar/index.js';
export { stacRoutes } from './stac/index.js';
export { tileRoutes } from './tiles/index.js';
export { trainingRoutes } from './training/index.js';
