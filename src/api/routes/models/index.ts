/** Stored models: lists, cards, STAC Items, files, deletion. Imports `analysis`, `training`, `query` and `storage`. */
export { modelRoutes } from './model-routes.js';
