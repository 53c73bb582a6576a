/** Health, readiness and Prometheus metrics of the node. Imports `dht` and `metrics`. */
export { operationRoutes } from './operation-routes.js';
