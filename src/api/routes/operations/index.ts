/** Health, readiness and Prometheus metrics of the node. Imports `dht` and `metrics`. */
export { type ProcessUsage, processUsage } from './process-usage.js';
export { operationRoutes } from './routes.js';
