/** STAC API 1.0 with its extensions. */
import type { FastifyInstance } from 'fastify';
import type { Services } from '../../services.js';
import { aggregateRoutes } from './aggregate.js';
import { collectionRoutes } from './collections.js';
import { landingRoutes } from './landing.js';
import { queryableRoutes } from './queryables.js';
import { searchRoutes } from './search.js';

export async function stacRoutes(server: FastifyInstance, options: { services: Services }): Promise<void> {
  for (const routes of [landingRoutes, collectionRoutes, searchRoutes, queryableRoutes, aggregateRoutes])
    await server.register(routes, options);
}
