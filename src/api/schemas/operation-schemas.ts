/** Names of the operations in `/openapi.json` and their security, for generated clients. */
import type { FastifyInstance } from 'fastify';

/** Names of operations. Generated clients call their functions by these names, so a name never changes. */
const NAMES: Record<string, string> = {
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

const EXECUTION = /^POST \/processes\/([\w-]+)\/execution$/;

/** `POST /processes/analyse-pca/execution` is `executeAnalysePca`. */
function nameOf(operation: string): string | undefined {
  const process = EXECUTION.exec(operation)?.[1];
  if (process === undefined) return NAMES[operation];
  const words = process.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `execute${words.join('')}`;
}

const SCHEME = 'token';

/** For `components` of the OpenAPI document. */
export const securitySchemes = {
  [SCHEME]: {
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
      ...(isGuarded && { security: [{ [SCHEME]: [] }] }),
    };
  });
}
