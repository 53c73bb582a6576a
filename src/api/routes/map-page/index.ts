/**
 * `/map`: the HTML page, its style, and its scripts (`browser/`), which run in the browser as they are compiled. Invariant: all resources
 * of the page come from this server. Imports the folder `http` and the parts `expressions` and `imagery`.
 */
export { mapPageRoutes } from './map-page-routes.js';
