/**
 * Map tiles, previews, TileJSON, time series and spectra, with titiler's parameter names. Imports files of a folder above (types), the
 * folders `http`, `routes/stac` and `schemas` and the parts `imagery` and `query`.
 */
export { mapRoutes } from './map-routes.js';
export { seriesRoutes } from './map-series-routes.js';
