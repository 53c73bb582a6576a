import { createReadStream } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { type ModelRecord, toArray } from '../../storage/index.js';
import type { ModelCard } from '../../training/index.js';
import { notFound } from '../errors.js';
import { answers, bytes } from '../schemas/answers.js';
import type { Services } from '../services.js';

/** What the list says of a model; losses, predictions and data are in its card alone. */
function listed({ card, files: _files, ...model }: ModelRecord) {
  const { epochs, metrics, baseline, seconds } = card as ModelCard;
  return { ...model, epochs, metrics, baseline, seconds };
}

/** Trained models: list, card, and the files that `tf.loadLayersModel` opens. */
export async function modelRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { storage } = services;
  const find = async (id: string) => {
    const model = await storage.getModel(id);
    if (!model) throw notFound(`model ${id}`);
    return model;
  };

  server.get(
    '/models',
    {
      schema: {
        summary: 'All models',
        tags: ['models'],
        response: { 200: answers('Models', 'All of them') },
      },
    },
    async () => ({
      models: (await toArray(storage.models())).map(listed),
    }),
  );

  server.get<{ Params: { id: string } }>(
    '/models/:id',
    {
      schema: {
        summary: 'A model and its card',
        tags: ['models'],
        response: { 200: answers('Model', 'The model') },
      },
    },
    async (request) => find(request.params.id),
  );

  server.get<{ Params: { id: string; file: string } }>(
    '/models/:id/:file',
    {
      schema: {
        summary: 'A file of a model',
        tags: ['models'],
        response: { 200: bytes('The file', 'application/json', 'application/octet-stream') },
        params: {
          type: 'object',
          properties: { id: { type: 'string' }, file: { enum: ['model.json', 'weights.bin', 'card.json'] } },
        },
      },
    },
    async (request, reply) => {
      const model = await find(request.params.id);
      await storage.bringModelFile(model, request.params.file);
      const type = request.params.file.endsWith('.json') ? 'application/json' : 'application/octet-stream';
      return reply
        .header('etag', `"${model.version}"`)
        .type(type)
        .send(createReadStream(storage.modelPath(model, request.params.file)));
    },
  );
}
