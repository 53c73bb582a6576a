/**
 * Behaviour of all routes, one fastify plugin per file: authentication, rate limit, problem details, body timeout, read-your-writes,
 * compression, validation. Invariant: a plugin depends on the config of a route, never on a single route. Imports `api/errors.ts`,
 * `dht` and `jobs`.
 */
export { type AccessOptions, FORWARDED_BASE_URL_HEADER, registerAuth, requireSafeBinding } from './auth.js';
export { registerBodyTimeout } from './body-timeout.js';
export { registerCompression } from './compression.js';
export { FORMAT_QUERY, registerFormatParameter } from './format-parameter.js';
export { registerJsonBodyLimits } from './json-body-limits.js';
export {
  earlyErrorOptions,
  MAX_BODY_BYTES,
  PROBLEM_TYPE,
  problemDocument,
  registerErrorHandler,
} from './problem-details.js';
export { registerReadYourWrites } from './read-your-writes.js';
export { registerRequestId, requestIdOptions } from './request-id.js';
export { registerRequestMetrics } from './request-metrics.js';
export { schemaController } from './validation.js';
