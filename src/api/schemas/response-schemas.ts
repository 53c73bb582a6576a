/** Descriptions of answers for `/openapi.json`. Tests validate the answers against them; the server does not. */
import type { FastifyInstance, FastifySchema } from 'fastify';
import { clusterSchemas } from './cluster-schemas.js';
import { jobSchemas } from './job-schemas.js';
import { stacSchemas } from './stac-schemas.js';
import { storeSchemas } from './store-schemas.js';
import { subscriptionSchemas } from './subscription-schemas.js';

const JSON_TYPE = 'application/json';
export const GEOJSON = 'application/geo+json';

/** An answer whose body has the shared schema `name`. */
export function jsonResponse(name: string, description: string, type = JSON_TYPE) {
  return { description, content: { [type]: { schema: { $ref: `${name}#` } } } };
}

/** An answer that is a file, a picture or a page. A JSON file may contain any object. */
export function fileResponse(description: string, ...types: string[]) {
  const schemaOf = (type: string) =>
    type === JSON_TYPE ? { type: 'object' } : { type: 'string', format: 'binary' };
  return {
    description,
    content: Object.fromEntries(types.map((type) => [type, { schema: schemaOf(type) }])),
  };
}

/** An answer without a body. */
export function emptyResponse(description: string) {
  return { type: 'null', description };
}

/** Options of a route with this tag in `/openapi.json`: what it does, its answers by status, and the schemas of the request. */
export const describeWithTag =
  (tag: string) =>
  (summary: string, response: object, request: FastifySchema = {}) => ({
    schema: { summary, tags: [tag], response, ...request },
  });

const problem = jsonResponse('Problem', 'The error, with its code', 'application/problem+json');

/** Registers the shared schemas, and the problem that every route may answer. Call this before the routes are registered. */
export function registerResponseSchemas(server: FastifyInstance): void {
  for (const schemas of [stacSchemas, jobSchemas, storeSchemas, clusterSchemas, subscriptionSchemas])
    for (const [$id, schema] of Object.entries(schemas)) server.addSchema({ $id, ...schema });
  server.addHook('onRoute', (route) => {
    if (!route.schema || route.schema.hide) return;
    const response = route.schema.response as object | undefined;
    route.schema = { ...route.schema, response: { ...response, '4xx': problem, '5xx': problem } };
  });
}
