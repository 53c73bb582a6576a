/** Training outside of the node: the list of files to read, and the upload of the trained model. */
import { Readable } from 'node:stream';
import {
  type CellInputs,
  type CheckInputs,
  cellInputsSchema,
  cellManifest,
  checkCell,
  MAX_UPLOAD_BYTES,
  type StoreInputs,
} from '../../training/index.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';
import {
  type ExecuteRequest,
  executionRoute,
  sendJob,
  startWithFile,
  wantedResultOptions,
} from './execution.js';
import { saveUpload } from './ingest.js';

const describe = describeWithTag('processes');

export const trainingRoutes: RouteGroup = async (server, { services }) => {
  const { storage, finder, processes } = services;
  const storing = processes.get('store-model');
  if (!storing) throw new Error('the process that stores models is not wired');

  server.post<{ Body: CellInputs }>(
    '/training/place',
    describe(
      'The files that a training of one place needs to read',
      { 200: jsonResponse('TrainingPlace', 'Its dates, with the paths of their files') },
      { body: closedObject(cellInputsSchema, { required: ['model'] }) },
    ),
    async ({ body }) => cellManifest(finder, body),
  );

  const { model, ...picking } = cellInputsSchema;
  server.post<{ Body: CheckInputs }>(
    '/training/check',
    describe(
      'The models that cannot be trained at one place, and the reasons',
      { 200: jsonResponse('CheckedPlace', 'The place') },
      {
        body: closedObject(
          { models: { type: 'array', minItems: 1, uniqueItems: true, items: model }, ...picking },
          { required: ['models'] },
        ),
      },
    ),
    async ({ body }) => checkCell({ storage, finder }, body),
  );

  server.post<{ Body: ExecuteRequest & { inputs: StoreInputs } }>(
    '/processes/store-model/execution',
    { ...executionRoute(storing), bodyLimit: MAX_UPLOAD_BYTES },
    async (request, reply) => {
      const resultOptions = wantedResultOptions(storing, request.body);
      const { trained, ...inputs } = request.body.inputs;
      const file = Readable.from([JSON.stringify(trained)], { objectMode: false });
      const { path, scratch } = await saveUpload(file, 'model.json', services);
      const options = { scratch, resultOptions, given: { ...inputs, path }, asked: request.body.inputs };
      return sendJob(request, reply, await startWithFile(request, services, storing, inputs, options));
    },
  );
};
