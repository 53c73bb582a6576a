/** Tile files and single bands of them, with byte ranges. Imports `imagery` and `storage`. */
export { tileRoutes } from './tile-routes.js';
