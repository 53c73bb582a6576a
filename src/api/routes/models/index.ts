/**
 * Stored models: lists, cards, STAC Items, files, deletion. Imports files of a folder above (types), the folders `http` and `schemas` and
 * the parts `async`, `grid`, `hyperspectral`, `query`, `storage` and `training`.
 */
export { modelRoutes } from './model-routes.js';
