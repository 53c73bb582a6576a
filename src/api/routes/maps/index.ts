/** Map tiles, previews, TileJSON, time series and spectra, with titiler's parameter names. Imports `imagery` and `query`. */
export { mapRoutes } from './map-routes.js';
export { seriesRoutes } from './series-routes.js';
export { spectraRoutes } from './spectra-routes.js';
