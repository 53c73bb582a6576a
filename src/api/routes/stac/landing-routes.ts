/** The landing page and the conformance classes. */
import { toArray } from '../../../async/index.js';
import type { RouteGroup } from '../../api-services.js';
import { baseUrl } from '../../http/index.js';
import { describeWithTag, GEOJSON, jsonResponse } from '../../schemas/index.js';
import { conformsTo } from './stac-conformance.js';

const JSON_TYPE = 'application/json';

const describe = describeWithTag('stac');

export const landingRoutes: RouteGroup = async (server, { services: { storage } }) => {
  server.get(
    '/',
    describe('STAC landing page', { 200: jsonResponse('Catalog', 'The root catalog') }),
    async (request) => {
      const base = baseUrl(request);
      const collections = await toArray(storage.collections());
      return {
        type: 'Catalog',
        stac_version: '1.0.0',
        id: 'tilewright',
        title: 'tilewright',
        description: 'Geohash tiles of satellite scenes',
        conformsTo,
        links: [
          { rel: 'self', type: JSON_TYPE, href: `${base}/` },
          { rel: 'root', type: JSON_TYPE, href: `${base}/` },
          { rel: 'conformance', type: JSON_TYPE, href: `${base}/conformance` },
          { rel: 'data', type: JSON_TYPE, href: `${base}/collections` },
          { rel: 'search', type: GEOJSON, method: 'GET', href: `${base}/search` },
          { rel: 'search', type: GEOJSON, method: 'POST', href: `${base}/search` },
          {
            rel: 'http://www.opengis.net/def/rel/ogc/1.0/queryables',
            type: 'application/schema+json',
            href: `${base}/queryables`,
          },
          // stac-browser lists these links by title, or by address if they have none.
          ...['GET', 'POST'].map((method) => ({
            rel: 'aggregate',
            type: JSON_TYPE,
            method,
            href: `${base}/aggregate`,
            title: `Counts of a search (${method})`,
          })),
          {
            rel: 'aggregations',
            type: JSON_TYPE,
            title: 'Available aggregations',
            href: `${base}/aggregations`,
          },
          {
            rel: 'service-desc',
            type: 'application/vnd.oai.openapi+json;version=3.0',
            title: 'OpenAPI document',
            href: `${base}/openapi.json`,
          },
          { rel: 'service-doc', type: 'text/html', title: 'Reference of the API', href: `${base}/docs` },
          { rel: 'alternate', type: 'text/html', title: 'Map', href: `${base}/map` },
          {
            rel: 'http://www.opengis.net/def/rel/ogc/1.0/processes',
            type: JSON_TYPE,
            title: 'OGC API processes',
            href: `${base}/processes`,
          },
          ...collections.map(({ id, title }) => ({
            rel: 'child',
            type: JSON_TYPE,
            title,
            href: `${base}/collections/${encodeURIComponent(id)}`,
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
