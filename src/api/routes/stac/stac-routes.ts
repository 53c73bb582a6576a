/** STAC API 1.0 with its extensions. */
import type { FastifyInstance } from 'fastify';
import type { Services } from '../../api-services.js';
import { aggregateRoutes } from './aggregate-routes.js';
import { collectionRoutes } from './collection-routes.js';
import { landingRoutes } from './landing-routes.js';
import { queryableRoutes } from './queryable-routes.js';
import { searchRoutes } from './search-routes.js';

export async function stacRoutes(server: FastifyInstance, options: { services: Services }): Promise<void> {
  for (const routes of [landingRoutes, collectionRoutes, searchRoutes, queryableRoutes, aggregateRoutes])
    await server.register(routes, options);
}
