/** How routes say what they answer, for `/openapi.json`. Tests hold the answers against it; the server itself does not. */
import type { FastifyInstance } from 'fastify';
import { clusterSchemas } from './cluster.js';
import { jobSchemas } from './jobs.js';
import { stacSchemas } from './stac.js';
import { storeSchemas } from './store.js';

const JSON_TYPE = 'application/json';
export const GEOJSON = 'application/geo+json';

/** An answer with a body of one of the shared schemas, by its name. */
export function jsonResponse(name: string, description: string, type = JSON_TYPE) {
  return { description, content: { [type]: { schema: { $ref: `${name}#` } } } };
}

/** An answer that is a file, a picture or a page; a file of JSON is any object. */
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

const problem = jsonResponse('Problem', 'What was wrong, with a code', 'application/problem+json');

/** Before the routes are registered: shared schemas, and the problems that every route may answer with. */
export function registerResponseSchemas(server: FastifyInstance): void {
  for (const schemas of [stacSchemas, jobSchemas, storeSchemas, clusterSchemas])
    for (const [$id, schema] of Object.entries(schemas)) server.addSchema({ $id, ...schema });
  server.addHook('onRoute', (route) => {
    if (!route.schema || route.schema.hide) return;
    const response = route.schema.response as object | undefined;
    route.schema = { ...route.schema, response: { ...response, '4xx': problem, '5xx': problem } };
  });
}
