/** STAC collections, and what is asked of one collection elsewhere. */
import type { FastifyInstance } from 'fastify';
import { collectionExtents, toStacCollection } from '../../query/index.js';
import { type CollectionRecord, type Storage, toArray } from '../../storage/index.js';
import { baseUrl } from '../base-url.js';
import { notFound } from '../errors.js';
import { answers } from '../schemas/answers.js';
import type { Services } from '../services.js';

/** Throws TW_API_NOT_FOUND. */
export async function requireCollection(storage: Storage, id: string): Promise<CollectionRecord> {
  const found = await storage.getCollection(id);
  if (!found) throw notFound(`collection ${id}`);
  return found;
}

export async function collectionRoutes(
  server: FastifyInstance,
  { services: { storage } }: { services: Services },
): Promise<void> {
  const tags = ['stac'];
  const describe = (records: CollectionRecord[], base: string) => {
    const extents = collectionExtents(storage.index);
    return records.map((record) => toStacCollection(record, extents.get(record.id), base));
  };

  server.get(
    '/collections',
    {
      schema: { summary: 'All collections', tags, response: { 200: answers('Collections', 'All of them') } },
    },
    async (request) => {
      const base = baseUrl(request);
      return {
        collections: describe(await toArray(storage.collections()), base),
        links: [
          { rel: 'root', type: 'application/json', href: `${base}/` },
          { rel: 'parent', type: 'application/json', href: `${base}/` },
          { rel: 'self', type: 'application/json', href: `${base}/collections` },
        ],
      };
    },
  );

  server.get<{ Params: { id: string } }>(
    '/collections/:id',
    {
      schema: { summary: 'One collection', tags, response: { 200: answers('Collection', 'The collection') } },
    },
    async (request) => {
      const record = await requireCollection(storage, request.params.id);
      return describe([record], baseUrl(request))[0];
    },
  );
}
