/** STAC API 1.0 with its extensions: landing page, collections, search, items, queryables, aggregation. Imports `query` and `storage`. */
export { stacRoutes } from './stac-routes.js';
