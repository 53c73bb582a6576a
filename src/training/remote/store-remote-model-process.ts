/**
 * Stores a model that was trained outside of the node, as if a child of the node had trained it. It is a job, so that it is stored
 * completely or not at all.
 */
import { readFile } from 'node:fs/promises';
import type { SelectedEngine } from '../../engines/index.js';
import type { JobContext, Process } from '../../jobs/index.js';
import { filterSchema, type TileFinder } from '../../query/index.js';
import type { Storage } from '../../storage/index.js';
import { trainedPixels, trainingFiles } from '../data/index.js';
import { cellChanged, wrongModel } from '../errors.js';
import { addModel, DEFAULT_SEED, emptyResults, mergeResults, type TrainResults } from '../jobs/index.js';
import { getModelSpec, MODEL_NAMES } from '../models/index.js';
import { modelStoredByJob, storeModel } from '../registry/index.js';
import { type CellInputs, selectedCell, tileVersionsDigest } from './remote-cell-manifest.js';
import {
  decodeUpload,
  type ModelUpload,
  modelUploadSchema,
  uploadedEngineSchema,
} from './remote-model-upload.js';
import { untrainedModel } from './remote-untrained-model.js';

export interface StoreInputs extends CellInputs {
  seed?: number;
  /** As in `CellManifest`. */
  tiles: string;
  /** The engine that trained the model. */
  engine: SelectedEngine;
  trained: ModelUpload;
}

/** Inputs of the job: the path of a file in place of the model. */
type StoreJobInputs = Omit<StoreInputs, 'trained'> & { path: string };

interface StoreContext {
  storage: Storage;
  finder: TileFinder;
}

/** Schemas of the inputs that identify a cell. */
const cellSchema = {
  model: { enum: MODEL_NAMES },
  filter: filterSchema,
};

/** JSON Schemas of `CellInputs`. */
export const cellInputsSchema = {
  ...cellSchema,
  validationFrom: { type: 'string', format: 'date-time' },
};

export function storeModelProcess(context: StoreContext): Process {
  return {
    id: 'store-model',
    title: 'Store a trained model',
    description:
      'Stores the model of one place that was trained outside of the node, for example in a Kubernetes Job.',
    inputs: {
      type: 'object',
      required: ['model', 'tiles', 'engine', 'trained'],
      additionalProperties: false,
      properties: {
        ...cellSchema,
        seed: { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 },
        tiles: {
          type: 'string',
          pattern: '^[0-9a-f]{64}$',
          description: 'Digest of the tiles, from the manifest of the place',
        },
        engine: uploadedEngineSchema,
        trained: modelUploadSchema,
      },
    },
    resumable: true,
    // The uploaded file is on this node.
    canTakeOver: async () => false,
    run: (given, job) => store(context, given as StoreJobInputs, job),
  };
}

/** Throws TW_TRAIN_CHANGED, TW_TRAIN_WRONG_MODEL and the errors of `selectedCell`. */
async function store(
  { storage, finder }: StoreContext,
  { model, seed = DEFAULT_SEED, tiles, engine, path, ...inputs }: StoreJobInputs,
  job: JobContext,
): Promise<TrainResults> {
  const { cell, filter } = await selectedCell(finder, inputs);
  const { collection, geocode } = cell;
  job.progress({ total: 1 });
  let stored = await modelStoredByJob(storage, job.id, model, cell, 'contained');
  if (!stored) {
    if (tileVersionsDigest(cell) !== tiles) throw cellChanged(`${collection} ${geocode}`);
    const sent: ModelUpload = JSON.parse(await readFile(path, 'utf8'));
    const trained = decodeUpload(sent, await untrainedModel({ model, seed }, job.signal));
    const about = { mode: 'contained', model, filter, engine, seed, job: job.id } as const;
    const files = trainingFiles(storage, getModelSpec(model), cell);
    if ('skipped' in files) throw wrongModel(`${geocode}: ${files.skipped}`);
    const pixels = trainedPixels(getModelSpec(model), cell);
    stored = await storeModel(storage, cell, trained, { ...about, ...pixels });
  }
  const { r2 } = stored.model.metrics.validation;
  job.log('info', `${geocode}: validation R2 ${r2.toFixed(3)}`);
  job.progress({ done: 1 });
  job.message('1 model stored');
  const results = emptyResults(engine.name, 'contained');
  addModel(results, stored);
  return mergeResults([results]);
}
