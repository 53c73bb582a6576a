/** Parts of scenes that other nodes ingest. */
import type { FastifyInstance } from 'fastify';
import {
  SCENE_PART_PATH,
  SCENE_PART_SCHEMA,
  type ScenePartEvent,
  type ScenePartRequest,
  type ScenePartService,
} from '../../../ingest/index.js';
import { taskErrorEvent } from '../../../jobs/index.js';
import { replyWithEvents } from './cluster-event-stream.js';

/** Limit of a request: an archive may send an Item of 20 MB, and the cells of a scene take less than 1 MB. */
const MAX_REQUEST_BYTES = 32e6;
/** Minimum interval between progress events. */
const PROGRESS_INTERVAL_MS = 500;

export async function scenePartRoutes(
  server: FastifyInstance,
  { sceneParts }: { sceneParts: ScenePartService },
): Promise<void> {
  const route = {
    config: { internal: true },
    schema: { hide: true, body: SCENE_PART_SCHEMA },
    bodyLimit: MAX_REQUEST_BYTES,
  };
  server.post<{ Body: ScenePartRequest }>(SCENE_PART_PATH, route, async (request, reply) => {
    const { body } = request;
    return replyWithEvents<ScenePartEvent>(reply, body.job, async (send, stopped) => {
      let sentAt = 0;
      const onShare = (share: number) => {
        if (performance.now() - sentAt < PROGRESS_INTERVAL_MS) return;
        sentAt = performance.now();
        send({ share });
      };
      try {
        send({ result: await sceneParts.run(body, onShare, stopped) });
      } catch (error) {
        request.log.info({ job: body.job, scene: body.scene, err: error }, 'part of a scene failed');
        send(taskErrorEvent(error));
      }
    });
  });
}
