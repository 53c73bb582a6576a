/** The landing page and the conformance classes. */
import { toArray } from '../../../async/index.js';
import type { RouteGroup } from '../../api-services.js';
import { baseUrl, link } from '../../http/index.js';
import { describeWithTag, GEOJSON, jsonResponse } from '../../schemas/index.js';
import { conformsTo } from './stac-conformance.js';

const OGC = 'http://www.opengis.net/def/rel/ogc/1.0';
const OPENAPI_TYPE = 'application/vnd.oai.openapi+json;version=3.0';

const describe = describeWithTag('stac');

export const landingRoutes: RouteGroup = async (server, { services: { storage } }) => {
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
          link(`${OGC}/queryables`, `${base}/queryables`, 'application/schema+json'),
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
          { ...link(`${OGC}/processes`, `${base}/processes`), title: 'OGC API processes' },
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
