/**
 * STAC API 1.0 with its extensions: landing page, collections, search, items, queryables, aggregation. Imports files of a folder above
 * (types), the folders `http` and `schemas` and the parts `async`, `query` and `storage` (types).
 */
export { requireCollection } from './collection-routes.js';
export { stacRoutes } from './stac-routes.js';
