/**
 * JSON Schemas of answers for `/openapi.json`, and the names of operations. Invariant: tests validate the answers against them; the server
 * does not. Imports no routes.
 */

export { JOB_STATES } from './job-schemas.js';
export { registerOpenApiDocument } from './openapi-schemas.js';
export { describeOperations } from './operation-schemas.js';
export {
  describeWithTag,
  emptyResponse,
  fileResponse,
  GEOJSON,
  jsonResponse,
  registerResponseSchemas,
} from './response-schemas.js';
export { closedObject, listOf, publishedSchema } from './schema-builders.js';
