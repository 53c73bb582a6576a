/**
 * Health, readiness and Prometheus metrics of the node. Imports files of a folder above (types), the folders `http`, `plugins` and
 * `schemas` and the parts `async` and `metrics`.
 */
export { operationRoutes } from './operation-routes.js';
