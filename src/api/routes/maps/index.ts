/**
 * Map tiles, previews, TileJSON, time series and spectra, with titiler's parameter names. Imports files of a folder above (types), the
 * folders `http` and `schemas` and the parts `imagery`, `query` and `storage` (types).
 */
export { mapRoutes } from './map-routes.js';
export { seriesRoutes } from './series-routes.js';
