/** Places that look like one. */
import type { FastifyInstance } from 'fastify';
import { isoTime, requireCollections, urls } from '../../../query/index.js';
import { type SimilarPlace, unknownTexture } from '../../../training/index.js';
import { notFound } from '../../errors.js';
import { baseUrl } from '../../http/base-url.js';
import { answers, GEOJSON } from '../../schemas/responses.js';
import type { Services } from '../../services.js';

interface SimilarBody {
  tile?: string;
  collection?: string;
  geocode?: string;
  limit?: number;
}

const DEFAULT_LIMIT = 10;
const MOST = 1000;
const name = { type: 'string', minLength: 1, maxLength: 200 };

const body = {
  type: 'object',
  additionalProperties: false,
  properties: {
    tile: { ...name, description: 'Id of a tile of the place' },
    collection: { ...name, description: 'With `geocode`, where no tile is named' },
    geocode: { ...name, maxLength: 30 },
    limit: { type: 'integer', minimum: 1, maximum: MOST, default: DEFAULT_LIMIT },
  },
  anyOf: [{ required: ['tile'] }, { required: ['collection', 'geocode'] }],
};

export async function similarRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { finder, storage, textures } = services;

  server.post<{ Body: SimilarBody }>(
    '/similar',
    {
      schema: {
        summary: 'Places of the same collection that look like one, by their textures',
        tags: ['search'],
        body,
        response: { 200: answers('SimilarPlaces', 'The nearest first') },
      },
    },
    async (request) => {
      const { tile, limit = DEFAULT_LIMIT, ...place } = request.body;
      const found = tile === undefined ? (place as Required<typeof place>) : await finder.get(tile);
      if (!found) throw notFound(`item ${tile}`);
      const { collection, geocode } = found;
      if (tile === undefined) await requireCollections(storage, { collections: [collection] });
      const nearest = await textures.nearest(collection, geocode, limit);
      if (!nearest) throw unknownTexture(collection, geocode);
      const { item } = urls(baseUrl(request));
      const documentOf = ({ version: _, start, ...similar }: SimilarPlace) => ({
        ...similar,
        datetime: isoTime(start),
        links: [{ rel: 'item', type: GEOJSON, href: item(similar.collection, similar.tile) }],
      });
      return { place: documentOf(nearest.place), similar: nearest.similar.map(documentOf) };
    },
  );
}
