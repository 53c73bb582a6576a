/** The aggregation extension: counts over the tiles that match a search. */
import type { FastifyRequest } from 'fastify';
import {
  type AggregationParams,
  aggregationBody,
  aggregationQuery,
  aggregations,
  type FilterParams,
  filterBody,
  filterQuery,
  parseFilter,
} from '../../../query/index.js';
import type { RouteGroup } from '../../api-services.js';
import { baseUrl, link, partialMembers, requestUrl } from '../../http/index.js';
import { closedObject, describeWithTag, jsonResponse } from '../../schemas/index.js';
import { checkSameCollection, requireCollection } from './collection-routes.js';

type Params = FilterParams & AggregationParams;

const query = closedObject({ ...filterQuery, ...aggregationQuery });
const body = closedObject({ ...filterBody, ...aggregationBody });

const describe = describeWithTag('stac');

export const aggregateRoutes: RouteGroup = async (server, { services: { storage, finder } }) => {
  const response = { 200: jsonResponse('Aggregations', 'Counts') };

  const linksOf = (request: FastifyRequest) => [
    link('root', `${baseUrl(request)}/`),
    link('self', requestUrl(request).href),
  ];

  const answer = async (request: FastifyRequest, params: Params) => {
    const {
      aggregations: names,
      datetime_frequency_interval,
      grid_geohash_frequency_precision,
      ...filter
    } = params;
    const wanted = { aggregations: names, datetime_frequency_interval, grid_geohash_frequency_precision };
    const { aggregations, unanswered } = await finder.aggregate(parseFilter(filter), wanted);
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
  const within = async (id: string, params: Params): Promise<Params> => {
    await requireCollection(storage, id);
    checkSameCollection(id, params.collections);
    return { ...params, collections: [id] };
  };

  server.get('/aggregations', describe('Available aggregations', response), async (request) => list(request));

  server.get<{ Querystring: Params }>(
    '/aggregate',
    describe('Counts of tiles, such as by day or by cell', response, { querystring: query }),
    async (request) => answer(request, request.query),
  );

  server.post<{ Body: Params }>(
    '/aggregate',
    describe('Counts of tiles, such as by day or by cell', response, { body }),
    async (request) => answer(request, request.body),
  );

  server.get<{ Params: { id: string } }>(
    '/collections/:id/aggregations',
    describe('Available aggregations of a collection', response),
    async (request) => {
      await requireCollection(storage, request.params.id);
      return list(request);
    },
  );

  server.get<{ Params: { id: string }; Querystring: Params }>(
    '/collections/:id/aggregate',
    describe('Counts of the tiles of a collection, such as by day or by cell', response, {
      querystring: query,
    }),
    async (request) => answer(request, await within(request.params.id, request.query)),
  );

  server.post<{ Params: { id: string }; Body: Params }>(
    '/collections/:id/aggregate',
    describe('Counts of the tiles of a collection, such as by day or by cell', response, { body }),
    async (request) => answer(request, await within(request.params.id, request.body)),
  );
};
