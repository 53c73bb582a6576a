/** Search, the Items of a collection, single Items, and counts over the tiles that match a search. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { runInTurns } from '../../async/index.js';
import {
  type AggregationParams,
  aggregationBody,
  aggregationQuery,
  aggregations,
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
} from '../../query/index.js';
import type { CollectionRecord } from '../../storage/index.js';
import { partialMembers, untilDisconnected } from '../answers.js';
import { noItem } from '../errors.js';
import { baseUrl, link, nextPageUrl, type Paging, paging, parseLimit, requestUrl } from '../links.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, GEOJSON, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';
import { checkSameCollection, requireCollection } from './collections.js';

/** The `fields` extension 1.0: selects the members of Items. */
interface Fields {
  /** The members before `include` and `exclude` are applied. */
  base: 'all' | 'default' | 'minimal';
  include: string[];
  exclude: string[];
}

/** Enough to request the Item again. */
const MINIMAL_MEMBERS = ['type', 'stac_version', 'id', 'collection'];
/** The members of a valid Item. */
const DEFAULT_MEMBERS = [...MINIMAL_MEMBERS, 'geometry', 'bbox', 'links', 'assets', 'properties.datetime'];

/** Parses `id,+geometry,-assets` or an object of two lists. Undefined means all members. */
function parseFields(given: unknown): Fields | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string') {
    const names = given
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
    const include = names.filter((name) => !name.startsWith('-')).map((name) => name.replace(/^\+/, ''));
    const exclude = names.filter((name) => name.startsWith('-')).map((name) => name.slice(1));
    return { base: include.length > 0 ? 'minimal' : 'default', include, exclude };
  }
  const lists = given as { include?: string[] | null; exclude?: string[] | null };
  const include = lists.include ?? [];
  const exclude = lists.exclude ?? [];
  const onlyExcludes = lists.include === undefined && exclude.length > 0;
  return { base: include.length > 0 ? 'minimal' : onlyExcludes ? 'all' : 'default', include, exclude };
}

type Members = Record<string, unknown>;

/**
 * An Item with only the wanted members. Members of `properties` are named with or without `properties.`. If `include` and `exclude`
 * conflict, the longer path wins, and `include` wins for equal paths.
 */
function selectFields(item: object, fields: Fields | undefined): object {
  if (!fields) return item;
  const pathOf = (name: string) =>
    name.includes('.') || name in item ? name.split('.') : ['properties', name];
  const base = { all: Object.keys(item), default: DEFAULT_MEMBERS, minimal: MINIMAL_MEMBERS }[fields.base];
  const selected: Members = {};
  for (const name of base) copyMember(item as Members, selected, pathOf(name));
  // Without `type` the Item would not be GeoJSON.
  const excluded = fields.exclude.filter((name) => name !== 'type');
  const rules = [
    ...excluded.map((name) => ({ path: pathOf(name), isIncluded: false })),
    ...fields.include.map((name) => ({ path: pathOf(name), isIncluded: true })),
  ];
  for (const { path, isIncluded } of rules.sort((a, b) => a.path.length - b.path.length)) {
    if (isIncluded) copyMember(item as Members, selected, path);
    else removeMember(selected, path);
  }
  return selected;
}

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Copies the value at a path; objects along the path are created. */
function copyMember(from: Members, to: Members, [name, ...rest]: string[]): void {
  if (name === undefined || !Object.hasOwn(from, name)) return;
  const value = from[name];
  if (rest.length === 0) to[name] = value;
  else if (isMembers(value)) {
    to[name] = Object.hasOwn(to, name) ? { ...(to[name] as Members) } : {};
    copyMember(value, to[name] as Members, rest);
  }
}

function removeMember(from: Members, [name, ...rest]: string[]): void {
  if (name === undefined || !Object.hasOwn(from, name)) return;
  const value = from[name];
  if (rest.length === 0) delete from[name];
  else if (isMembers(value)) {
    from[name] = { ...value };
    removeMember(from[name] as Members, rest);
  }
}

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

/** Items that are written in one step of a turn. */
const ITEMS_PER_STEP = 16;

const describe = describeWithTag('stac');

export const searchRoutes: RouteGroup = async (server, { services: { storage, finder } }) => {
  const response = { 200: jsonResponse('FeatureCollection', 'A page of Items', GEOJSON) };

  /** One page of Items. `next` creates the link to the next page from its token. Throws TW_API_BUSY. */
  const page = async (
    reply: FastifyReply,
    base: string,
    params: SearchParams,
    links: object[],
    next: (token: string) => object,
  ): Promise<Buffer> => {
    const { limit, token, sortby, fields, bandAssets = false, ...filter } = params;
    const selection = parseFields(fields);
    const most = Math.min(
      parseLimit({ limit }),
      bandAssets ? MAX_LIMIT_WITH_BANDS : Number.POSITIVE_INFINITY,
    );
    const search = createSearch(parseFilter(filter), { order: parseSortby(sortby), limit: most, token });
    await reply.reserveMemory(most * EXPECTED_ITEM_BYTES);
    const gone = untilDisconnected(reply);
    const { tiles, ...found } = await finder.find(search, gone);
    gone.throwIfAborted();
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
    const writeItems = function* (): Generator<void> {
      for (const [i, { tile, record }] of features.entries()) {
        if (i > 0) out.appendText(',');
        if (!selection && !bandAssets) writeItem(tile, record);
        else {
          const item = toStacItem(tile, record, base, { bandAssets });
          out.appendText(JSON.stringify(selectFields(item, selection)));
        }
        if (i % ITEMS_PER_STEP === 0) yield;
      }
    };
    await runInTurns(writeItems(), { signal: gone });
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

  const pageByGet = (
    request: FastifyRequest,
    reply: FastifyReply,
    params: SearchParams,
    links: object[] = [],
  ) => {
    const base = baseUrl(request);
    const self = link('self', requestUrl(request).href, GEOJSON);
    return page(reply, base, params, [self, ...links], (token) => ({
      method: 'GET',
      href: nextPageUrl(request, token),
    }));
  };

  server.get<{ Querystring: SearchParams }>(
    '/search',
    describe('Search for tiles', response, { querystring: searchQuery }),
    async (request, reply) => {
      reply.type(GEOJSON);
      return pageByGet(request, reply, request.query);
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
      return page(reply, base, body, [self], (token) => ({
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
      return pageByGet(request, reply, { ...request.query, collections: [id] }, [link('collection', href)]);
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

type AggregationRequest = FilterParams & AggregationParams;

const aggregateQuery = closedObject({ ...filterQuery, ...aggregationQuery });
const aggregateBody = closedObject({ ...filterBody, ...aggregationBody });

/** The aggregation extension. */
export const aggregateRoutes: RouteGroup = async (server, { services: { storage, finder } }) => {
  const response = { 200: jsonResponse('Aggregations', 'Counts') };

  const linksOf = (request: FastifyRequest) => [
    link('root', `${baseUrl(request)}/`),
    link('self', requestUrl(request).href),
  ];

  const answer = async (request: FastifyRequest, reply: FastifyReply, params: AggregationRequest) => {
    const {
      aggregations: names,
      datetime_frequency_interval,
      grid_geohash_frequency_precision,
      ...filter
    } = params;
    const wanted = { aggregations: names, datetime_frequency_interval, grid_geohash_frequency_precision };
    const { aggregations, unanswered } = await finder.aggregate(
      parseFilter(filter),
      wanted,
      untilDisconnected(reply),
    );
    return {
      type: 'AggregationCollection',
      aggregations,
      ...partialMembers({ unanswered }),
      links: linksOf(request),
    };
  };

  const list = (request: FastifyRequest) => ({
    type: 'AggregationCollection',
    aggregations,
    links: linksOf(request),
  });

  /** Restricts the search to the collection in the path. */
  const within = async (id: string, params: AggregationRequest): Promise<AggregationRequest> => {
    await requireCollection(storage, id);
    checkSameCollection(id, params.collections);
    return { ...params, collections: [id] };
  };

  server.get('/aggregations', describe('Available aggregations', response), async (request) => list(request));

  server.get<{ Querystring: AggregationRequest }>(
    '/aggregate',
    describe('Counts of tiles, such as by day or by cell', response, { querystring: aggregateQuery }),
    async (request, reply) => answer(request, reply, request.query),
  );

  server.post<{ Body: AggregationRequest }>(
    '/aggregate',
    describe('Counts of tiles, such as by day or by cell', response, { body: aggregateBody }),
    async (request, reply) => answer(request, reply, request.body),
  );

  server.get<{ Params: { id: string } }>(
    '/collections/:id/aggregations',
    describe('Available aggregations of a collection', response),
    async (request) => {
      await requireCollection(storage, request.params.id);
      return list(request);
    },
  );

  server.get<{ Params: { id: string }; Querystring: AggregationRequest }>(
    '/collections/:id/aggregate',
    describe('Counts of the tiles of a collection, such as by day or by cell', response, {
      querystring: aggregateQuery,
    }),
    async (request, reply) => answer(request, reply, await within(request.params.id, request.query)),
  );

  server.post<{ Params: { id: string }; Body: AggregationRequest }>(
    '/collections/:id/aggregate',
    describe('Counts of the tiles of a collection, such as by day or by cell', response, {
      body: aggregateBody,
    }),
    async (request, reply) => answer(request, reply, await within(request.params.id, request.body)),
  );
};
