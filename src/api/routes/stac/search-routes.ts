/** Search, the Items of a collection, and single Items. */
import type { FastifyRequest } from 'fastify';
import {
  createItemWriter,
  createSearch,
  type FilterParams,
  filterBody,
  filterQuery,
  type ItemOptions,
  JsonBuffer,
  parseFilter,
  parseSortby,
  sortbyBody,
  sortbyQuery,
  toStacItem,
} from '../../../query/index.js';
import type { CollectionRecord } from '../../../storage/index.js';
import type { RouteGroup } from '../../api-services.js';
import { noItem } from '../../errors.js';
import {
  baseUrl,
  link,
  nextPageUrl,
  type Paging,
  paging,
  parseLimit,
  partialMembers,
  requestUrl,
} from '../../http/index.js';
import { closedObject, describeWithTag, GEOJSON, jsonResponse } from '../../schemas/index.js';
import { checkSameCollection, requireCollection } from './collection-routes.js';
import { parseFields, selectFields } from './stac-fields-extension.js';

interface SearchParams extends FilterParams, Paging, ItemOptions {
  sortby?: unknown;
  fields?: unknown;
}

const text = { type: 'string' };
/** Items of a page with an asset for each band, which are larger and slower to write. */
const MAX_LIMIT_WITH_BANDS = 1000;

const bandAssets = {
  type: 'boolean',
  description: 'Adds an asset for each band, for programs that read one band per file',
};
const fieldNames = { type: 'array', items: text, nullable: true };
const searchBody = closedObject({
  ...filterBody,
  ...paging,
  sortby: sortbyBody,
  fields: {
    type: 'object',
    properties: { include: fieldNames, exclude: fieldNames },
    description: '{"include": ["properties.platform"], "exclude": ["assets"]}',
  },
  bandAssets,
});
const searchQuery = closedObject({
  ...filterQuery,
  ...paging,
  sortby: sortbyQuery,
  fields: text,
  bandAssets,
});
const { ids: _ids, ...itemsProperties } = searchQuery.properties as Record<string, object>;
const itemsQuery = closedObject(itemsProperties);
const itemQuery = closedObject({ bandAssets });
/** Other parameters are ignored, such as keys that clients add for a gateway. */
const postQuery = { type: 'object', properties: { bandAssets } };

/** Most Items have 13 bands or fewer and are shorter. */
const EXPECTED_ITEM_BYTES = 8192;

const describe = describeWithTag('stac');

export const searchRoutes: RouteGroup = async (server, { services: { storage, finder } }) => {
  const response = { 200: jsonResponse('FeatureCollection', 'A page of Items', GEOJSON) };

  /** One page of Items. `next` creates the link to the next page from its token. */
  const page = async (
    base: string,
    params: SearchParams,
    links: object[],
    next: (token: string) => object,
  ): Promise<Buffer> => {
    const { limit, token, sortby, fields, bandAssets = false, ...filter } = params;
    const selection = parseFields(fields);
    const search = createSearch(parseFilter(filter), {
      order: parseSortby(sortby),
      limit: Math.min(parseLimit({ limit }), bandAssets ? MAX_LIMIT_WITH_BANDS : Number.POSITIVE_INFINITY),
      token,
    });
    const { tiles, ...found } = await finder.find(search);
    const collections = new Map<string, CollectionRecord | undefined>();
    for (const id of new Set(tiles.map((tile) => tile.collection)))
      collections.set(id, await storage.catalogue.collections.get(id));
    const features = tiles.flatMap((tile) => {
      // A collection may be deleted while its tiles are read.
      const record = collections.get(tile.collection);
      return record ? [{ tile, record }] : [];
    });
    const out = new JsonBuffer((1 + features.length) * EXPECTED_ITEM_BYTES);
    const writeItem = createItemWriter(base, out);
    out.appendText('{"type":"FeatureCollection","features":[');
    for (const [i, { tile, record }] of features.entries()) {
      if (i > 0) out.appendText(',');
      if (!selection && !bandAssets) writeItem(tile, record);
      else {
        const item = toStacItem(tile, record, base, { bandAssets });
        out.appendText(JSON.stringify(selectFields(item, selection)));
      }
    }
    const others = {
      numberMatched: found.numberMatched,
      numberReturned: features.length,
      ...partialMembers(found),
      links: [
        link('root', `${base}/`),
        ...links,
        ...(found.next ? [{ rel: 'next', type: GEOJSON, ...next(found.next) }] : []),
      ],
    };
    out.appendText(`],${JSON.stringify(others).slice(1)}`);
    return out.take();
  };

  const pageByGet = (request: FastifyRequest, params: SearchParams, links: object[] = []) => {
    const base = baseUrl(request);
    const self = link('self', requestUrl(request).href, GEOJSON);
    return page(base, params, [self, ...links], (token) => ({
      method: 'GET',
      href: nextPageUrl(request, token),
    }));
  };

  server.get<{ Querystring: SearchParams }>(
    '/search',
    describe('Search for tiles', response, { querystring: searchQuery }),
    async (request, reply) => {
      reply.type(GEOJSON);
      return pageByGet(request, request.query);
    },
  );

  server.post<{ Body: SearchParams; Querystring: ItemOptions }>(
    '/search',
    // Some clients add their users' parameters to the URL.
    describe('Search for tiles', response, { body: searchBody, querystring: postQuery }),
    async (request, reply) => {
      const base = baseUrl(request);
      const { bandAssets } = request.query;
      const body = { ...request.body, ...(bandAssets !== undefined && { bandAssets }) };
      const self = { rel: 'self', type: GEOJSON, method: 'POST', href: `${base}/search`, body };
      reply.type(GEOJSON);
      return page(base, body, [self], (token) => ({
        method: 'POST',
        href: `${base}/search`,
        body: { ...body, token },
      }));
    },
  );

  server.get<{ Params: { id: string }; Querystring: SearchParams }>(
    '/collections/:id/items',
    describe('Items of a collection', response, { querystring: itemsQuery }),
    async (request, reply) => {
      const { id } = await requireCollection(storage, request.params.id);
      checkSameCollection(id, request.query.collections);
      const href = `${baseUrl(request)}/collections/${encodeURIComponent(id)}`;
      reply.type(GEOJSON);
      return pageByGet(request, { ...request.query, collections: [id] }, [link('collection', href)]);
    },
  );

  server.get<{ Params: { id: string; itemId: string }; Querystring: ItemOptions }>(
    '/collections/:id/items/:itemId',
    describe('One item', { 200: jsonResponse('Item', 'The Item', GEOJSON) }, { querystring: itemQuery }),
    async (request, reply) => {
      const { id, itemId } = request.params;
      const tile = await finder.get(itemId);
      if (tile?.collection !== id) throw noItem(itemId, id, tile);
      reply.type(GEOJSON);
      return toStacItem(tile, await requireCollection(storage, id), baseUrl(request), request.query);
    },
  );
};
