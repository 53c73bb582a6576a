/**
 * Cells that look like a given one. Imports files of a folder above (types), the folders `http` and `schemas` and the parts `query` and
 * `training`.
 */
export { similarRoutes } from './similar-routes.js';
