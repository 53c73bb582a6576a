/** STAC collections, and the properties that `filter` supports. */
import { runInTurns, toArray } from '../../async/index.js';
import { queryablesSchema, toStacCollection, toStacItem, withSummaries } from '../../query/index.js';
import type { CollectionRecord, Storage } from '../../storage/index.js';
import { partialMembers } from '../answers.js';
import { badRequest, resourceNotFound } from '../errors.js';
import { baseUrl, link, listPaging, type Paging, toPage } from '../links.js';
import { describeWithTag, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';

/** Throws TW_API_NOT_FOUND. */
export async function requireCollection(storage: Storage, id: string): Promise<CollectionRecord> {
  const found = await storage.catalogue.collections.get(id);
  if (!found) throw resourceNotFound(`collection ${id}`);
  return found;
}

/** pystac-client repeats the collection of the path as a parameter. Throws TW_API_BAD_REQUEST if the parameter names another one. */
export function checkSameCollection(id: string, named: string | string[] = id): void {
  if ([named].flat().some((one) => one !== id))
    throw badRequest(`the path names the collection ${id}, and the parameter ${[named].flat().join(',')}`);
}

const describe = describeWithTag('stac');

export const collectionRoutes: RouteGroup = async (server, { services: { storage, finder } }) => {
  const documentsOf = async (records: CollectionRecord[], base: string) => {
    const [{ extents, unanswered }, { contents }] = await Promise.all([finder.extents(), finder.contents()]);
    function* documents() {
      const collections = [];
      for (const record of records) {
        const document = toStacCollection(record, extents.get(record.id), base);
        const content = contents.get(record.id);
        const items = content?.tiles.map((tile) => toStacItem(tile, record, base));
        collections.push(content && items ? withSummaries(document, content, items) : document);
        yield;
      }
      return collections;
    }
    const collections = await runInTurns(documents());
    return { collections, ...partialMembers({ unanswered }) };
  };

  server.get<{ Querystring: Paging }>(
    '/collections',
    describe(
      'All collections',
      { 200: jsonResponse('Collections', 'All of them, or a page') },
      {
        // Other parameters are ignored: pystac-client sends `q`, `bbox` and `datetime`, and filters the answer itself.
        querystring: { type: 'object', properties: listPaging },
      },
    ),
    async (request) => {
      const base = baseUrl(request);
      const { page, links } = toPage(
        request,
        await toArray(storage.catalogue.collections.values()),
        request.query,
      );
      return {
        ...(await documentsOf(page, base)),
        links: [link('root', `${base}/`), link('parent', `${base}/`), ...links],
      };
    },
  );

  server.get<{ Params: { id: string } }>(
    '/collections/:id',
    describe('One collection', { 200: jsonResponse('Collection', 'The collection') }),
    async (request) => {
      const record = await requireCollection(storage, request.params.id);
      const {
        collections: [document],
        ...lacking
      } = await documentsOf([record], baseUrl(request));
      return { ...document, ...lacking };
    },
  );
};

const SCHEMA_TYPE = 'application/schema+json';

/** The filter extension: the properties that `filter` supports. */
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
