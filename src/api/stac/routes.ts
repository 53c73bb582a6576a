/** STAC API 1.0: landing page, collections, items and search. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  collectionExtent,
  type FilterParams,
  filterBody,
  filterQuery,
  parseFilter,
  searchTiles,
  toStacCollection,
  toStacItem,
} from '../../query/index.js';
import { type CollectionRecord, toArray } from '../../storage/index.js';
import { baseUrl } from '../base-url.js';
import { notFound } from '../errors.js';
import { limitOf, nextPage, type Paging, paging } from '../paging.js';
import type { Services } from '../services.js';

const CONFORMANCE = [
  'https://api.stacspec.org/v1.0.0/core',
  'https://api.stacspec.org/v1.0.0/collections',
  'https://api.stacspec.org/v1.0.0/ogcapi-features',
  'http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/core',
  'http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/oas30',
  'http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/geojson',
  'http://www.opengis.net/spec/ogcapi-processes-1/1.0/conf/core',
  'http://www.opengis.net/spec/ogcapi-processes-1/1.0/conf/json',
  'http://www.opengis.net/spec/ogcapi-processes-1/1.0/conf/job-list',
  'http://www.opengis.net/spec/ogcapi-processes-1/1.0/conf/dismiss',
];

const GEOJSON = 'application/geo+json';
type SearchParams = FilterParams & Paging;

const object = (properties: object) => ({ type: 'object', additionalProperties: false, properties });
const searchBody = object({ ...filterBody, ...paging });
const searchQuery = object({ ...filterQuery, ...paging });
const itemsQuery = object({ bbox: filterQuery.bbox, datetime: filterQuery.datetime, ...paging });

export async function stacRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { storage } = services;
  const tags = ['stac'];

  const collection = async (id: string) => {
    const found = await storage.getCollection(id);
    if (!found) throw notFound(`collection ${id}`);
    return found;
  };

  const describe = (record: CollectionRecord, base: string) =>
    toStacCollection(record, collectionExtent(storage.index, record.id), base);

  /** One page of items; `next` makes the link to the page after it from its token. */
  const page = async (base: string, params: SearchParams, next: (token: string) => object) => {
    const { limit, token, ...filter } = params;
    const found = searchTiles(storage.index, parseFilter(filter), { limit: limitOf({ limit }), token });
    const tiles = await storage.getTiles(found.ids);
    const collections = new Map((await toArray(storage.collections())).map((record) => [record.id, record]));
    const features = tiles.flatMap((tile) => {
      // A collection may be deleted while its tiles are read.
      const record = collections.get(tile.collection);
      return record ? [toStacItem(tile, record, base)] : [];
    });
    return {
      type: 'FeatureCollection',
      features,
      numberMatched: found.numberMatched,
      numberReturned: features.length,
      links: [
        { rel: 'root', type: 'application/json', href: base },
        ...(found.next ? [{ rel: 'next', type: GEOJSON, ...next(found.next) }] : []),
      ],
    };
  };

  const nextByGet = (request: FastifyRequest, base: string) => (token: string) => ({
    method: 'GET',
    href: nextPage(request, base, token),
  });

  server.get('/', { schema: { summary: 'STAC landing page', tags } }, async (request) => {
    const base = baseUrl(request);
    const json = 'application/json';
    return {
      type: 'Catalog',
      stac_version: '1.0.0',
      id: 'tilewright',
      title: 'tilewright',
      description: 'Geohash tiles of satellite scenes',
      conformsTo: CONFORMANCE,
      links: [
        { rel: 'self', type: json, href: base },
        { rel: 'root', type: json, href: base },
        { rel: 'conformance', type: json, href: `${base}/conformance` },
        { rel: 'data', type: json, href: `${base}/collections` },
        { rel: 'search', type: GEOJSON, method: 'GET', href: `${base}/search` },
        { rel: 'search', type: GEOJSON, method: 'POST', href: `${base}/search` },
        {
          rel: 'service-desc',
          type: 'application/vnd.oai.openapi+json;version=3.0',
          href: `${base}/openapi.json`,
        },
        { rel: 'http://www.opengis.net/def/rel/ogc/1.0/processes', type: json, href: `${base}/processes` },
        ...(await toArray(storage.collections())).map(({ id, title }) => ({
          rel: 'child',
          type: json,
          title,
          href: `${base}/collections/${id}`,
        })),
      ],
    };
  });

  server.get('/conformance', { schema: { summary: 'Conformance classes', tags } }, async () => ({
    conformsTo: CONFORMANCE,
  }));

  server.get('/collections', { schema: { summary: 'All collections', tags } }, async (request) => {
    const base = baseUrl(request);
    return {
      collections: (await toArray(storage.collections())).map((record) => describe(record, base)),
      links: [
        { rel: 'root', type: 'application/json', href: base },
        { rel: 'self', type: 'application/json', href: `${base}/collections` },
      ],
    };
  });

  server.get<{ Params: { id: string } }>(
    '/collections/:id',
    { schema: { summary: 'One collection', tags } },
    async (request) => describe(await collection(request.params.id), baseUrl(request)),
  );

  server.get<{ Params: { id: string }; Querystring: SearchParams }>(
    '/collections/:id/items',
    { schema: { summary: 'Items of a collection', tags, querystring: itemsQuery } },
    async (request, reply) => {
      const { id } = await collection(request.params.id);
      const base = baseUrl(request);
      reply.type(GEOJSON);
      return page(base, { ...request.query, collections: [id] }, nextByGet(request, base));
    },
  );

  server.get<{ Params: { id: string; itemId: string } }>(
    '/collections/:id/items/:itemId',
    { schema: { summary: 'One item', tags } },
    async (request, reply) => {
      const { id, itemId } = request.params;
      const tile = await storage.getTile(itemId);
      if (tile?.collection !== id) throw notFound(`item ${itemId} in collection ${id}`);
      reply.type(GEOJSON);
      return toStacItem(tile, await collection(id), baseUrl(request));
    },
  );

  server.get<{ Querystring: SearchParams }>(
    '/search',
    { schema: { summary: 'Search of tiles, newest first', tags, querystring: searchQuery } },
    async (request, reply) => {
      const base = baseUrl(request);
      reply.type(GEOJSON);
      return page(base, request.query, nextByGet(request, base));
    },
  );

  server.post<{ Body: SearchParams }>(
    '/search',
    { schema: { summary: 'Search of tiles, newest first', tags, body: searchBody } },
    async (request, reply) => {
      const base = baseUrl(request);
      reply.type(GEOJSON);
      return page(base, request.body, (token) => ({
        method: 'POST',
        href: `${base}/search`,
        body: { ...request.body, token },
      }));
    },
  );
}
