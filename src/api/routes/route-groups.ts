/** All groups of routes, in the order of the OpenAPI document. */
import type { RouteGroup } from '../api-services.js';
import { clusterRoutes } from './cluster/index.js';
import { docsPageRoutes } from './docs-page/index.js';
import { ingestRoutes } from './ingest/index.js';
import { mapPageRoutes } from './map-page/index.js';
import { mapRoutes, seriesRoutes } from './maps/index.js';
import { modelRoutes } from './models/index.js';
import { operationRoutes } from './operations/index.js';
import { processRoutes } from './processes/index.js';
import { sceneRoutes } from './scenes/index.js';
import { similarRoutes } from './similar/index.js';
import { stacRoutes } from './stac/index.js';
import { subscriptionRoutes } from './subscriptions/index.js';
import { tileRoutes } from './tiles/index.js';
import { trainingRoutes } from './training/index.js';

export const ROUTE_GROUPS: RouteGroup[] = [
  stacRoutes,
  tileRoutes,
  mapRoutes,
  mapPageRoutes,
  docsPageRoutes,
  seriesRoutes,
  ingestRoutes,
  sceneRoutes,
  processRoutes,
  subscriptionRoutes,
  trainingRoutes,
  modelRoutes,
  similarRoutes,
  clusterRoutes,
  operationRoutes,
];
