/**
 * JSON Schemas of answers for `/openapi.json`, and the names of operations. Invariant: tests validate the answers against them; the server
 * does not. Imports no routes.
 */
export { closedObject, listOf, publishedSchema } from './builders.js';
export { JOB_STATES } from './jobs.js';
export { registerOpenApiDocument } from './openapi.js';
export { describeOperations } from './operations.js';
export { emptyResponse, fileResponse, GEOJSON, jsonResponse, registerResponseSchemas } from './responses.js';
