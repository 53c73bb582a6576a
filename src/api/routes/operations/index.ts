/**
 * Health, readiness and Prometheus metrics of the node. Imports files of a folder above (types), the folders `http`, `plugins` and
 * `schemas` and the part `metrics`.
 */
export { operationRoutes } from './operation-routes.js';
