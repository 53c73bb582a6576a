/** The document of `/openapi.json`, made from the routes. */
import Fastify, { type FastifyInstance, type FastifyServerOptions, type RouteOptions } from 'fastify';
import { securitySchemes } from './operation-schemas.js';
import { publishedSchema } from './schema-builders.js';

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
