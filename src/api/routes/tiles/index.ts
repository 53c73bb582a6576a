/**
 * Tile files and single bands of them, with byte ranges. Imports files of a folder above (types), the folders `http` and `schemas` and the
 * parts `imagery`, `raster` (types) and `storage` (types).
 */
export { tileRoutes } from './tile-routes.js';
