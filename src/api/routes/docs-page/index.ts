/**
 * `/docs`: the interactive reference of the API, made by Swagger UI from `/openapi.json`. Invariant: all resources of the page come from
 * this server. Imports the folder `http`.
 */
export { docsPageRoutes } from './docs-page-routes.js';
