/** The filter extension: the properties that `filter` supports. */
import { toArray } from '../../../async/index.js';
import { queryablesSchema } from '../../../query/index.js';
import type { RouteGroup } from '../../api-services.js';
import { baseUrl } from '../../http/index.js';
import { describeWithTag, jsonResponse } from '../../schemas/index.js';
import { requireCollection } from './collection-routes.js';

const SCHEMA_TYPE = 'application/schema+json';

const describe = describeWithTag('stac');

export const queryableRoutes: RouteGroup = async (server, { services: { storage } }) => {
  const response = { 200: jsonResponse('Queryables', 'A JSON Schema', SCHEMA_TYPE) };

  server.get('/queryables', describe('Properties that filters support', response), async (request, reply) => {
    const collection = (await toArray(storage.catalogue.collections.values())).map(({ id }) => id);
    reply.type(SCHEMA_TYPE);
    return queryablesSchema(`${baseUrl(request)}/queryables`, 'Queryables of tilewright', { collection });
  });

  server.get<{ Params: { id: string } }>(
    '/collections/:id/queryables',
    describe('Properties that filters support in a collection', response),
    async (request, reply) => {
      const { id, title } = await requireCollection(storage, request.params.id);
      const url = `${baseUrl(request)}/collections/${encodeURIComponent(id)}/queryables`;
      reply.type(SCHEMA_TYPE);
      return queryablesSchema(url, `Queryables of ${title}`, { collection: [id] });
    },
  );
};
