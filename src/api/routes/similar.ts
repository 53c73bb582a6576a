/** Cells that look like a given one. */
import { isoTime, requireCollections, stacUrls } from '../../query/index.js';
import { type TextureNeighbour, unknownTexture } from '../../training/index.js';
import { resourceNotFound } from '../errors.js';
import { baseUrl, link } from '../links.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, GEOJSON, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';

interface SimilarBody {
  tile?: string;
  collection?: string;
  geocode?: string;
  limit?: number;
}

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 1000;
const name = { type: 'string', minLength: 1, maxLength: 200 };

const body = closedObject(
  {
    tile: { ...name, description: 'Id of a tile of the place' },
    collection: { ...name, description: 'Required with `geocode` if there is no `tile`' },
    geocode: { ...name, maxLength: 30 },
    limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
  },
  { anyOf: [{ required: ['tile'] }, { required: ['collection', 'geocode'] }] },
);

const describe = describeWithTag('search');

export const similarRoutes: RouteGroup = async (server, { services }) => {
  const { finder, storage, textures } = services;

  server.post<{ Body: SimilarBody }>(
    '/similar',
    describe(
      'Places of the same collection with similar textures',
      { 200: jsonResponse('SimilarPlaces', 'The nearest first') },
      { body },
    ),
    async (request) => {
      const { tile, limit = DEFAULT_LIMIT, ...place } = request.body;
      const found = tile === undefined ? (place as Required<typeof place>) : await finder.get(tile);
      if (!found) throw resourceNotFound(`item ${tile}`);
      const { collection, geocode } = found;
      if (tile === undefined) await requireCollections(storage, { collections: [collection] });
      const nearest = await textures.nearest(collection, geocode, limit);
      if (!nearest) throw unknownTexture(collection, geocode);
      const { item } = stacUrls(baseUrl(request));
      const documentOf = ({ version: _, start, ...similar }: TextureNeighbour) => ({
        ...similar,
        datetime: isoTime(start),
        links: [link('item', item(similar.collection, similar.tile), GEOJSON)],
      });
      return { place: documentOf(nearest.cell), similar: nearest.similar.map(documentOf) };
    },
  );
};
