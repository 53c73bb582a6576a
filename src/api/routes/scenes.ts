/** Lists scenes; deletes tiles, scenes and collections. */
import { toArray } from '../../async/index.js';
import { createSearch, type Filter, isoTime, slotsUnanswered, type TileFinder } from '../../query/index.js';
import type { SceneRecord, TileRecord } from '../../storage/index.js';
import { badPagingToken, noItem, resourceNotFound } from '../errors.js';
import { link, nextPageUrl, type Paging, paging, parseLimit } from '../links.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, emptyResponse, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';
import { requireCollection } from './collections.js';

export type ListedScene = ReturnType<typeof summary>;

function summary({ id, collection, start, end, platform, geocodes, warnings, committedAt }: SceneRecord) {
  return {
    id,
    collection,
    datetime: isoTime(start),
    end_datetime: isoTime(end),
    platform,
    tiles: geocodes.length,
    warnings,
    committed: isoTime(committedAt),
  };
}

/** A paging token is the id of a scene, which may have been deleted in the meantime. */
const SCENE_ID = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,119}$/;

/** Header with the number of deleted tiles, because 204 has no body. */
const DELETED_TILES = 'tilewright-deleted-tiles';
const DELETED = { ...emptyResponse('It is deleted'), headers: { [DELETED_TILES]: { type: 'integer' } } };

const describe = describeWithTag('scenes');

export const sceneRoutes: RouteGroup = async (server, { services }) => {
  const { storage, finder, cluster } = services;
  const write = (summary: string) => ({ ...describe(summary, { 204: DELETED }), config: { write: true } });

  server.get<{ Params: { id: string }; Querystring: Paging }>(
    '/collections/:id/scenes',
    describe(
      'Scenes of a collection, in the order of their ids',
      { 200: jsonResponse('Scenes', 'A page of scenes') },
      { querystring: closedObject(paging) },
    ),
    async (request) => {
      const { id } = request.params;
      await requireCollection(storage, id);
      const { token } = request.query;
      if (token !== undefined && !SCENE_ID.test(token)) throw badPagingToken(token);
      const limit = parseLimit(request.query);
      // One more scene shows that there is a next page. Its token is the last id of this page.
      const found = await toArray(storage.scanScenes(id, token, limit + 1));
      const here = found.slice(0, limit);
      return {
        // Damaged records are skipped; `verify` lists them.
        scenes: here.flatMap(({ record }) => (record ? [summary(record)] : [])),
        links: found.length > limit ? [link('next', nextPageUrl(request, here[limit - 1].id))] : [],
      };
    },
  );

  server.get<{ Params: { id: string; sceneId: string } }>(
    '/collections/:id/scenes/:sceneId',
    describe('A scene and its cells', { 200: jsonResponse('Scene', 'The scene') }),
    async (request) => {
      const { id, sceneId } = request.params;
      const scene = await storage.getScene(id, sceneId);
      if (!scene) throw resourceNotFound(`scene ${sceneId} in collection ${id}`);
      return { ...summary(scene), geocodes: scene.geocodes };
    },
  );

  server.delete<{ Params: { id: string; itemId: string } }>(
    '/collections/:id/items/:itemId',
    write('Deletes a tile'),
    async (request, reply) => {
      const { id, itemId } = request.params;
      const get = (tile: string) => (cluster ? finder.get(tile) : storage.catalogue.tiles.get(tile));
      const tile = await get(itemId);
      if (tile?.collection !== id) throw noItem(itemId, id, tile);
      await storage.collections.deleteTile(itemId, get);
      return reply.code(204).header(DELETED_TILES, 1).send();
    },
  );

  server.delete<{ Params: { id: string; sceneId: string } }>(
    '/collections/:id/scenes/:sceneId',
    write('Deletes a scene with its tiles'),
    async (request, reply) => {
      const tiles = await storage.collections.deleteScene(request.params.id, request.params.sceneId);
      return reply.code(204).header(DELETED_TILES, tiles).send();
    },
  );

  server.delete<{ Params: { id: string } }>(
    '/collections/:id',
    write('Deletes a collection with its scenes and tiles; models stay'),
    async (request, reply) => {
      const { id } = request.params;
      const tilesLeft = cluster ? () => tilesOfCollection(finder, id) : undefined;
      const tiles = await storage.collections.delete(id, tilesLeft);
      return reply.code(204).header(DELETED_TILES, tiles).send();
    },
  );
};

/** The tiles of all nodes. Throws TW_QUERY_UNANSWERED. */
async function* tilesOfCollection(finder: TileFinder, id: string): AsyncGenerator<TileRecord> {
  const filter: Filter = { op: '=', property: 'collection', value: id };
  let token: string | undefined;
  do {
    const page = await finder.find(createSearch(filter, { limit: PAGE_SIZE, count: false, token }));
    if (page.unanswered) throw slotsUnanswered(page.unanswered.length);
    yield* page.tiles;
    token = page.next;
  } while (token !== undefined);
}

/** Tiles in an answer of another node. */
const PAGE_SIZE = 1000;
