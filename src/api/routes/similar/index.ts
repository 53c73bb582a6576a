/** Cells that look like a given one. Imports `training` and `query`. */
export { similarRoutes } from './similar-routes.js';
