/** STAC API 1.0 with its extensions. */
import type { RouteGroup } from '../../api-services.js';
import { aggregateRoutes } from './aggregate-routes.js';
import { collectionRoutes } from './collection-routes.js';
import { queryableRoutes } from './queryable-routes.js';
import { searchRoutes } from './search-routes.js';
import { landingRoutes } from './stac-landing-routes.js';

export const stacRoutes: RouteGroup = async (server, options) => {
  for (const routes of [landingRoutes, collectionRoutes, searchRoutes, queryableRoutes, aggregateRoutes])
    await server.register(routes, options);
};
