/**
 * Behaviour of all routes, one fastify plugin per file: authentication, rate limit, problem details, body timeout, read-your-writes,
 * compression, validation. Invariant: a plugin depends on the config of a route, never on a single route. Imports the parts `dht`, `jobs`
 * and `metrics` (types).
 */
export {
  type AccessOptions,
  FORWARDED_BASE_URL_HEADER,
  registerAuth,
  requireSafeBinding,
} from './auth-plugin.js';
export { registerBodyTimeout } from './body-timeout-plugin.js';
export { registerCompression } from './compression-plugin.js';
export { FORMAT_QUERY, registerFormatParameter } from './format-parameter-plugin.js';
export { registerJsonBodyLimits } from './json-body-limits-plugin.js';
export {
  earlyErrorOptions,
  MAX_BODY_BYTES,
  PROBLEM_TYPE,
  problemDocument,
  registerErrorHandler,
} from './problem-details-plugin.js';
export { registerReadYourWrites } from './read-your-writes-plugin.js';
export { registerRequestId, requestIdOptions } from './request-id-plugin.js';
export { registerRequestMetrics } from './request-metrics-plugin.js';
export { schemaController } from './validation-plugin.js';
