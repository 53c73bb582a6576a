/** The document of `/openapi.json`, made from the routes: names of operations, security, and descriptions of answers. */

import type { FastifyInstance, FastifySchema, FastifyServerOptions, RouteOptions } from 'fastify';
import Fastify from 'fastify';
import { publishedSchema } from './builders.js';
import { clusterSchemas } from './cluster.js';
import { jobSchemas, subscriptionSchemas } from './jobs.js';
import { stacSchemas } from './stac.js';
import { storeSchemas } from './store.js';

/** Names of operations. Generated clients call their functions by these names, so a name never changes. */
const OPERATION_NAMES: Record<string, string> = {
  'GET /': 'getLandingPage',
  'GET /conformance': 'getConformance',
  'GET /collections': 'listCollections',
  'GET /collections/:id': 'getCollection',
  'DELETE /collections/:id': 'deleteCollection',
  'GET /search': 'searchItems',
  'POST /search': 'searchItemsByPost',
  'GET /collections/:id/items': 'listItems',
  'GET /collections/:id/items/:itemId': 'getItem',
  'DELETE /collections/:id/items/:itemId': 'deleteItem',
  'GET /queryables': 'getQueryables',
  'GET /collections/:id/queryables': 'getCollectionQueryables',
  'GET /aggregations': 'listAggregations',
  'GET /aggregate': 'aggregate',
  'POST /aggregate': 'aggregateByPost',
  'GET /collections/:id/aggregations': 'listCollectionAggregations',
  'GET /collections/:id/aggregate': 'aggregateCollection',
  'POST /collections/:id/aggregate': 'aggregateCollectionByPost',
  'GET /docs': 'getDocsPage',
  'GET /tiles/:itemId/:group.tif': 'getTileFile',
  'GET /tiles/:itemId/:group/:band.tif': 'getBandFile',
  'GET /xyz/:collection/:z/:x/:y.:format': 'getMapTile',
  'GET /xyz/:collection/:z/:x/:y': 'getMapTileByFormat',
  'GET /xyz/:collection/tilejson.json': 'getTileJson',
  'GET /preview/:itemId.:format': 'getPreview',
  'GET /preview/:itemId': 'getPreviewByFormat',
  'GET /map': 'getMapPage',
  'POST /timeseries': 'getTimeSeries',
  'POST /spectra': 'getSpectra',
  'POST /ingest': 'ingest',
  'GET /collections/:id/scenes': 'listScenes',
  'GET /collections/:id/scenes/:sceneId': 'getScene',
  'DELETE /collections/:id/scenes/:sceneId': 'deleteScene',
  'GET /processes': 'listProcesses',
  'GET /processes/:id': 'getProcess',
  'GET /jobs': 'listJobs',
  'GET /jobs/:id': 'getJob',
  'DELETE /jobs/:id': 'cancelJob',
  'GET /jobs/:id/results': 'getJobResults',
  'GET /jobs/:id/results/files/:name': 'getJobFile',
  'GET /jobs/:id/logs': 'getJobLog',
  'GET /jobs/:id/events': 'getJobEvents',
  'POST /jobs/:id/retry': 'retryJob',
  'GET /subscriptions': 'listSubscriptions',
  'POST /subscriptions': 'createSubscription',
  'GET /subscriptions/:id': 'getSubscription',
  'PATCH /subscriptions/:id': 'changeSubscription',
  'DELETE /subscriptions/:id': 'removeSubscription',
  'POST /subscriptions/:id/run': 'runSubscription',
  'POST /training/place': 'getTrainingPlace',
  'POST /training/check': 'checkTraining',
  'GET /models': 'listModels',
  'GET /models/:id': 'getModel',
  'DELETE /models/:id': 'deleteModel',
  'GET /models/:id/item': 'getModelItem',
  'GET /models/:id/:file': 'getModelFile',
  'GET /models/:id/versions': 'listModelVersions',
  'GET /models/:id/versions/:version': 'getModelVersion',
  'DELETE /models/:id/versions/:version': 'deleteModelVersion',
  'GET /models/:id/versions/:version/item': 'getModelVersionItem',
  'GET /models/:id/versions/:version/:file': 'getModelVersionFile',
  'POST /similar': 'findSimilarPlaces',
  'GET /cluster/nodes': 'listNodes',
  'GET /cluster/usage': 'getClusterUsage',
  'GET /cluster/placement': 'getPlacement',
  'GET /cluster/locate/:grid/:geocode': 'locateCell',
  'POST /cluster/nodes/:id/drain': 'drainNode',
  'POST /cluster/nodes/:id/join': 'rejoinNode',
  'POST /cluster/rebalance': 'rebalance',
  'GET /health': 'getHealth',
  'GET /ready': 'getReady',
  'GET /metrics': 'getMetrics',
};

const EXECUTE_OPERATION = /^POST \/processes\/([\w-]+)\/execution$/;

/** `POST /processes/analyse-pca/execution` is `executeAnalysePca`. */
function nameOf(operation: string): string | undefined {
  const process = EXECUTE_OPERATION.exec(operation)?.[1];
  if (process === undefined) return OPERATION_NAMES[operation];
  const words = process.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `execute${words.join('')}`;
}

const SECURITY_SCHEME = 'token';

/** For `components` of the OpenAPI document. */
const securitySchemes = {
  [SECURITY_SCHEME]: {
    type: 'http' as const,
    scheme: 'bearer',
    description:
      'A token that the server was started with: `--token` for everything, `--read-token` for reads.',
  },
};

/** Adds names to operations, and the token if this server requires one. Call this before the routes are registered. */
export function describeOperations(
  server: FastifyInstance,
  { token, readToken }: { token?: string; readToken?: string },
): void {
  server.addHook('onRoute', (route) => {
    if (!route.schema || route.schema.hide) return;
    const { write = false, open = false } = route.config ?? {};
    const isGuarded = write ? Boolean(token || readToken) : Boolean(readToken) && !open;
    const operationId = nameOf(`${route.method} ${route.url}`);
    route.schema = {
      ...route.schema,
      ...(operationId !== undefined && { operationId }),
      ...(isGuarded && { security: [{ [SECURITY_SCHEME]: [] }] }),
    };
  });
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenAPI document of all routes, without `servers`. */
    openApiDocument(): Promise<object>;
  }
}

type Route = Pick<RouteOptions, 'method' | 'url' | 'schema'>;

/**
 * Lets `server.openApiDocument()` describe all routes that are registered later. The document is made at the first call, because loading
 * the package for it takes as long as a short command. Call this after the hooks that add to the schemas of routes.
 */
export function registerOpenApiDocument(
  server: FastifyInstance,
  version: string,
  schemaController: FastifyServerOptions['schemaController'],
): void {
  const routes: Route[] = [];
  server.addHook('onRoute', ({ method, url, schema }) => {
    if (method !== 'HEAD') routes.push({ method, url, schema });
  });
  const describe = async () => {
    const { default: swagger } = await import('@fastify/swagger');
    // The package describes the routes of a server, so this one has the same routes.
    const described = Fastify({ exposeHeadRoutes: false, schemaController });
    await described.register(swagger, {
      transform: ({ schema, url }) => ({ schema: publishedSchema(schema), url }),
      refResolver: { buildLocalReference: (json) => String(json.$id) },
      openapi: {
        openapi: '3.0.3',
        info: {
          title: 'tilewright',
          description: 'Geohash tiles of satellite scenes: STAC search, tile files, jobs and models.',
          version,
        },
        components: { securitySchemes },
      },
    });
    for (const schema of Object.values(server.getSchemas())) described.addSchema(schema);
    for (const route of routes) described.route({ ...route, handler: async () => {} });
    await described.ready();
    return described.swagger();
  };
  let document: Promise<object> | undefined;
  server.decorate('openApiDocument', () => (document ??= describe()));
}

const JSON_TYPE = 'application/json';
export const GEOJSON = 'application/geo+json';

/** An answer whose body has the shared schema `name`. Tests validate answers against these schemas; the server does not. */
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
