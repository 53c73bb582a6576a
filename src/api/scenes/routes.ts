/** What was ingested: scenes listed; tiles, scenes and collections deleted. */
import type { FastifyInstance } from 'fastify';
import { type SceneRecord, toArray } from '../../storage/index.js';
import { badPage, notFound } from '../errors.js';
import { limitOf, nextPage, type Paging, paging } from '../paging.js';
import { answers, empty } from '../schemas/answers.js';
import type { Services } from '../services.js';

const iso = (time: number) => new Date(time).toISOString();

function summary({ id, collection, start, end, platform, geocodes, warnings, committedAt }: SceneRecord) {
  return {
    id,
    collection,
    datetime: iso(start),
    end_datetime: iso(end),
    platform,
    tiles: geocodes.length,
    warnings,
    committed: iso(committedAt),
  };
}

/** A paging token is the id of a scene; that one may be deleted meanwhile. */
const SCENE_ID = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,119}$/;

/** Says how many tiles were deleted; 204 has no body. */
const DELETED_TILES = 'tilewright-deleted-tiles';
const DELETED = { ...empty('It is deleted'), headers: { [DELETED_TILES]: { type: 'integer' } } };

export async function sceneRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { storage } = services;
  const describe = (text: string) => ({ schema: { summary: text, tags: ['scenes'] } });
  const write = (text: string) => ({
    schema: { ...describe(text).schema, response: { 204: DELETED } },
    config: { write: true },
  });

  server.get<{ Params: { id: string }; Querystring: Paging }>(
    '/collections/:id/scenes',
    {
      schema: {
        ...describe('Scenes of a collection, in the order of their ids').schema,
        querystring: { type: 'object', additionalProperties: false, properties: paging },
        response: { 200: answers('Scenes', 'A page of scenes') },
      },
    },
    async (request) => {
      const { id } = request.params;
      if (!(await storage.getCollection(id))) throw notFound(`collection ${id}`);
      const { token } = request.query;
      if (token !== undefined && !SCENE_ID.test(token)) throw badPage(token);
      const limit = limitOf(request.query);
      // One more tells whether there is a next page. Its token is the last id of this one.
      const found = await toArray(storage.scanScenes(id, token, limit + 1));
      const here = found.slice(0, limit);
      const next = (token: string) => ({
        rel: 'next',
        type: 'application/json',
        href: nextPage(request, token),
      });
      return {
        // Damaged records are passed over; `verify` names them.
        scenes: here.flatMap(({ record }) => (record ? [summary(record)] : [])),
        links: found.length > limit ? [next(here[limit - 1].id)] : [],
      };
    },
  );

  server.get<{ Params: { id: string; sceneId: string } }>(
    '/collections/:id/scenes/:sceneId',
    {
      schema: {
        ...describe('A scene and its cells').schema,
        response: { 200: answers('Scene', 'The scene') },
      },
    },
    async (request) => {
      const { id, sceneId } = request.params;
      const scene = await storage.getScene(id, sceneId);
      if (!scene) throw notFound(`scene ${sceneId} in collection ${id}`);
      return { ...summary(scene), geocodes: scene.geocodes };
    },
  );

  server.delete<{ Params: { id: string; itemId: string } }>(
    '/collections/:id/items/:itemId',
    write('Deletes a tile'),
    async (request, reply) => {
      const { id, itemId } = request.params;
      if ((await storage.getTile(itemId))?.collection !== id)
        throw notFound(`item ${itemId} in collection ${id}`);
      await storage.deleteTile(itemId);
      return reply.code(204).header(DELETED_TILES, 1).send();
    },
  );

  server.delete<{ Params: { id: string; sceneId: string } }>(
    '/collections/:id/scenes/:sceneId',
    write('Deletes a scene with its tiles'),
    async (request, reply) => {
      const tiles = await storage.deleteScene(request.params.id, request.params.sceneId);
      return reply.code(204).header(DELETED_TILES, tiles).send();
    },
  );

  server.delete<{ Params: { id: string } }>(
    '/collections/:id',
    write('Deletes a collection with its scenes and tiles; models stay'),
    async (request, reply) => {
      const tiles = await storage.deleteCollection(request.params.id);
      return reply.code(204).header(DELETED_TILES, tiles).send();
    },
  );
}
