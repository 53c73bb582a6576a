/** STAC API 1.0 with its extensions: the landing page, the conformance classes, and the routes of collections and searches. */
import { toArray } from '../../async/index.js';
import { baseUrl, link } from '../links.js';
import { describeWithTag, GEOJSON, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';
import { collectionRoutes, queryableRoutes } from './collections.js';
import { aggregateRoutes, searchRoutes } from './search.js';

const stac = (path: string, version = 'v1.0.0') => `https://api.stacspec.org/${version}/${path}`;
const features = (part: number, name: string) =>
  `http://www.opengis.net/spec/ogcapi-features-${part}/1.0/conf/${name}`;
const cql2 = (name: string) => `http://www.opengis.net/spec/cql2/1.0/conf/${name}`;
const processes = (name: string) => `http://www.opengis.net/spec/ogcapi-processes-1/1.0/conf/${name}`;

/** The conformance classes of this API. */
const conformsTo = [
  stac('core'),
  stac('collections'),
  stac('ogcapi-features'),
  stac('item-search'),
  // Each extension has the version of its own specification.
  stac('item-search#filter', 'v1.0.0-rc.3'),
  ...['item-search#sort', 'item-search#fields', 'item-search#query'].map((path) => stac(path)),
  ...['ogcapi-features#sort', 'ogcapi-features#fields', 'ogcapi-features#query'].map((path) => stac(path)),
  ...['aggregation', 'aggregation#query', 'aggregation#filter'].map((path) => stac(path, 'v0.3.0')),
  ...['core', 'oas30', 'geojson'].map((name) => features(1, name)),
  ...['filter', 'features-filter', 'queryables'].map((name) => features(3, name)),
  ...['cql2-text', 'cql2-json', 'basic-cql2', 'advanced-comparison-operators'].map(cql2),
  ...['basic-spatial-functions', 'basic-spatial-functions-plus', 'spatial-functions'].map(cql2),
  ...['temporal-functions', 'case-insensitive-comparison', 'accent-insensitive-comparison', 'arithmetic'].map(
    cql2,
  ),
  ...['core', 'json', 'job-list', 'dismiss'].map(processes),
];

const OGC_REL = 'http://www.opengis.net/def/rel/ogc/1.0';
const OPENAPI_TYPE = 'application/vnd.oai.openapi+json;version=3.0';

const describe = describeWithTag('stac');

const landingRoutes: RouteGroup = async (server, { services: { storage } }) => {
  server.get(
    '/',
    describe('STAC landing page', { 200: jsonResponse('Catalog', 'The root catalog') }),
    async (request) => {
      const base = baseUrl(request);
      const collections = await toArray(storage.catalogue.collections.values());
      return {
        type: 'Catalog',
        stac_version: '1.0.0',
        id: 'tilewright',
        title: 'tilewright',
        description: 'Geohash tiles of satellite scenes',
        conformsTo,
        links: [
          link('self', `${base}/`),
          link('root', `${base}/`),
          link('conformance', `${base}/conformance`),
          link('data', `${base}/collections`),
          { ...link('search', `${base}/search`, GEOJSON), method: 'GET' },
          { ...link('search', `${base}/search`, GEOJSON), method: 'POST' },
          link(`${OGC_REL}/queryables`, `${base}/queryables`, 'application/schema+json'),
          // stac-browser lists these links by title, or by address if they have none.
          ...['GET', 'POST'].map((method) => ({
            ...link('aggregate', `${base}/aggregate`),
            method,
            title: `Counts of a search (${method})`,
          })),
          { ...link('aggregations', `${base}/aggregations`), title: 'Available aggregations' },
          { ...link('service-desc', `${base}/openapi.json`, OPENAPI_TYPE), title: 'OpenAPI document' },
          { ...link('service-doc', `${base}/docs`, 'text/html'), title: 'Reference of the API' },
          { ...link('alternate', `${base}/map`, 'text/html'), title: 'Map' },
          { ...link(`${OGC_REL}/processes`, `${base}/processes`), title: 'OGC API processes' },
          ...collections.map(({ id, title }) => ({
            ...link('child', `${base}/collections/${encodeURIComponent(id)}`),
            title,
          })),
        ],
      };
    },
  );

  server.get(
    '/conformance',
    describe('Conformance classes', { 200: jsonResponse('Conformance', 'The conformance classes') }),
    async () => ({ conformsTo }),
  );
};

export const stacRoutes: RouteGroup = async (server, options) => {
  for (const routes of [landingRoutes, collectionRoutes, searchRoutes, queryableRoutes, aggregateRoutes])
    await server.register(routes, options);
};
