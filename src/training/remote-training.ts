/**
 * Trains a cell outside of its node, for example in a Kubernetes Job: the data to read there, and the upload of the model, which a job
 * stores as if a child of the node had trained it, completely or not at all.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { searchAllTiles } from '../derive/index.js';
import { ENGINE_NAMES, EngineProcess, ProcessEnded, type SelectedEngine } from '../engines/index.js';
import type { JobContext, Process } from '../jobs/index.js';
import {
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterSchema,
  parseFilter,
  parseInstant,
  type TileFinder,
} from '../query/index.js';
import type { Storage, TileLayout } from '../storage/index.js';
import type { AcquisitionFiles, DatePair } from './acquisitions.js';
import { CANDIDATES } from './candidates.js';
import {
  groupTilesByCell,
  reasonNotTrainable,
  type TrainingCell,
  trainedPixels,
  trainingFiles,
} from './cells.js';
import { cellChanged, nothingTrained, oneCellAtATime, trainingFailed, wrongModel } from './errors.js';
import { HISTORY_USES } from './history.js';
import { validationDate } from './hold-out.js';
import { modelStoredByJob, storeModel } from './model-store.js';
import { getModelSpec, MODEL_NAMES } from './models/builtin.js';
import type { ModelFiles } from './models/weights.js';
import type { ModelChoice, TrainedCell } from './report.js';
import { DEFAULT_SEED, validationTime } from './train-inputs.js';
import { TRAINING_WORKER } from './train-pool.js';
import { addModel, emptyResults, mergeResults, QUESTION_ERRORS, type TrainResults } from './train-results.js';
import type { TrainingHandlers } from './train-task.js';

/** Identifies a model: the kind `model`, at the only cell that matches the filter. */
export interface CellInputs {
  model: string;
  filter?: FilterParams;
  /** First held-out time, RFC 3339. Default: the last quarter of the dates of the cell. */
  validationFrom?: string;
}

export interface CellManifest extends Omit<TrainingCell, 'tiles'> {
  /** Digest of the tiles and their versions. */
  tiles: string;
  /** Files are identified by their paths in the API. */
  dates: AcquisitionFiles[];
  pairs?: DatePair[];
  /** First held-out time, milliseconds since 1970. */
  validationFrom?: number;
}

export interface CheckInputs {
  models: string[];
  filter?: FilterParams;
  /** As in `CellInputs`. */
  validationFrom?: string;
}

export interface CellCheck extends Omit<TrainingCell, 'tiles'> {
  /** Models that cannot be trained there, with reasons. */
  skipped: { model: string; reason: string }[];
}

/**
 * Checks which models cannot be trained at the only cell that matches the filter. Throws the errors of `selectedCell`, and the TW_STORE_
 * and TW_RASTER_ errors.
 */
export async function checkCell(
  { storage, finder }: { storage: Storage; finder: TileFinder },
  { models, ...inputs }: CheckInputs,
): Promise<CellCheck> {
  const { cell } = await selectedCell(finder, inputs);
  const skipped: CellCheck['skipped'] = [];
  for (const model of models) {
    const reason = await reasonNotTrainable(storage, model, cell, validationFrom(inputs, cell));
    if (reason !== undefined) skipped.push({ model, reason });
  }
  const { collection, grid, geocode } = cell;
  return { collection, grid, geocode, skipped };
}

/** Returns the only cell that matches the filter, on any node. Throws TW_TRAIN_NOTHING, TW_TRAIN_ONE_PLACE, TW_QUERY_INSTANT. */
async function selectedCell(
  finder: TileFinder,
  inputs: Pick<CellInputs, 'filter' | 'validationFrom'>,
): Promise<{ cell: TrainingCell; filter: Filter }> {
  validationTime(inputs);
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  const cells = groupTilesByCell(await searchAllTiles(finder, filter));
  const [cell] = cells;
  if (!cell) throw nothingTrained(0, []);
  if (cells.length > 1) throw oneCellAtATime(cells.length);
  return { cell, filter };
}

/** Returns the data that the training of the cell reads. Throws the errors of `selectedCell`. */
export async function cellManifest(finder: TileFinder, inputs: CellInputs): Promise<CellManifest> {
  const { cell } = await selectedCell(finder, inputs);
  const { collection, grid, geocode } = cell;
  // The API sends each image as a file.
  const tileImage = ({ id, groups }: TileLayout, name: string) => {
    const { bytes } = groups.find((group) => group.name === name)!;
    return { path: `/tiles/${id}/${name}.tif`, start: 0, bytes };
  };
  const files = trainingFiles({ tileImage }, getModelSpec(inputs.model), cell);
  if ('skipped' in files) throw nothingTrained(1, [`${geocode}: ${files.skipped}`]);
  return {
    collection,
    grid,
    geocode,
    tiles: tileVersionsDigest(cell),
    ...files,
    validationFrom: validationFrom(inputs, cell),
  };
}

/** Tiles never change, but the set of tiles of a cell does. */
function tileVersionsDigest({ tiles }: TrainingCell): string {
  return createHash('sha256')
    .update(JSON.stringify(tiles.map(({ id, version }) => [id, version])))
    .digest('hex');
}

/** Returns the first held-out time: the given one, or one from the dates of this cell. */
function validationFrom(
  inputs: Pick<CellInputs, 'validationFrom'>,
  { tiles }: Pick<TrainingCell, 'tiles'>,
): number | undefined {
  return validationTime(inputs) ?? validationDate([tiles.map(({ start }) => start)]);
}

/**
 * Upload of a model that was trained outside of its node: a `TrainedCell` as JSON. Anyone with write access can upload any numbers, but
 * only numbers: the node itself builds the topology and the card, except for the measured values.
 */
interface ModelUpload extends Omit<TrainedCell, 'files' | 'epochs' | 'bestEpoch' | 'predictions' | 'start'> {
  bestEpoch?: number;
  /** Consecutive little-endian float32, as base64. */
  weights: string;
  predictions?: { truth: number[]; predicted: number[] };
}

/** Maximum size of an upload. The largest built-in model has 0.95 MB of weights, 1.3 MB as base64. */
export const MAX_UPLOAD_BYTES = 8 * 2 ** 20;

const number = { type: 'number' };
const positive = { type: 'number', minimum: 0 };
const count = { type: 'integer', minimum: 0 };
const text = { type: 'string', maxLength: 1000 };
const object = (properties: Record<string, object>, optional: Record<string, object> = {}) => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties),
  properties: { ...properties, ...optional },
});
const imageMeans = { psnr: number, ssim: number, msSsim: object({ value: number, scales: count }) };
const imageCounts = object({ psnr: count, ssim: count, msSsim: count });
const metricsSchema = object({ mse: positive, r2: number }, { ...imageMeans, images: imageCounts });
const tileScore = object(
  { images: imageCounts, dates: { type: 'array', maxItems: 10, items: text } },
  imageMeans,
);
const spreadSchema = object({ count, mean: number, squares: positive });
const numberList = { type: 'array', items: number, maxItems: 100_000 };

const numberPair = { type: 'array', minItems: 2, maxItems: 2, items: number };
const textList = { type: 'array', items: text, maxItems: 10_000 };
const choiceSchema = object(
  {
    serves: { enum: CANDIDATES },
    candidates: {
      type: 'array',
      maxItems: CANDIDATES.length,
      items: object({ name: { enum: CANDIDATES }, error: positive, errors: numberList }),
    },
  },
  {
    history: object({
      use: { enum: HISTORY_USES },
      dates: textList,
      groups: textList,
      fallback: { enum: ['mean', 'ridge'] },
      ridge: object({ planes: { type: 'array', items: count, maxItems: 100 }, penalty: positive }),
    }),
  },
);

/** JSON Schema of the engine used, as returned by `selectEngine`. */
const uploadedEngineSchema = object({
  name: { enum: ENGINE_NAMES },
  version: text,
  why: { type: 'array', maxItems: 10, items: object({ engine: { enum: ENGINE_NAMES }, reason: text }) },
});

/** JSON Schema of a ModelUpload. */
export const modelUploadSchema = object(
  {
    weights: { type: 'string', maxLength: MAX_UPLOAD_BYTES },
    losses: {
      type: 'array',
      maxItems: 10_000,
      items: object(
        { epoch: { type: 'integer', minimum: 1 }, train: number, validation: number },
        { selection: number },
      ),
    },
    metrics: object({ train: metricsSchema, validation: metricsSchema }, { tile: tileScore }),
    spread: spreadSchema,
    baseline: object(
      { mean: metricsSchema, linear: metricsSchema },
      { history: metricsSchema, unchanged: metricsSchema, nearest: metricsSchema, median: metricsSchema },
    ),
    skill: object({ value: number }, { interval: numberPair }),
    patches: object({ train: count, validation: count }),
    split: text,
    bytesRead: count,
    seconds: positive,
  },
  {
    trainingMean: number,
    predictions: object({ truth: numberList, predicted: numberList }),
    selection: object({ mse: positive, mean: positive, spread: spreadSchema }),
    // Clients of older versions do not send these.
    bestEpoch: { type: 'integer', minimum: 0 },
    holdOut: object(
      {
        side: { enum: ['eastern', 'western', 'southern', 'northern'] },
        gap: count,
        window: object({ column: count, row: count, width: count, height: count }),
      },
      { from: { type: 'string', format: 'date-time' }, dates: count },
    ),
    dateErrors: {
      type: 'array',
      maxItems: 10_000,
      items: object(
        { datetime: { type: 'string', format: 'date-time' }, error: positive, patches: count },
        { trained: { const: true } },
      ),
    },
    displayRange: numberPair,
    choice: choiceSchema,
    questions: { type: 'array', maxItems: 10_000, items: QUESTION_ERRORS },
    copies: { type: 'array', maxItems: 10_000, items: { type: 'array', items: text, maxItems: 2 } },
  },
);

export function encodeUpload({
  files,
  epochs: _epochs,
  start: _start,
  predictions,
  ...measured
}: TrainedCell): ModelUpload {
  return {
    ...measured,
    weights: Buffer.from(files['weights.bin']).toString('base64'),
    ...(predictions && {
      predictions: { truth: [...predictions.truth], predicted: [...predictions.predicted] },
    }),
  };
}

/** Returns the model with the topology of `blank`, an untrained model of its kind. Throws TW_TRAIN_WRONG_MODEL, TW_QUERY_INSTANT. */
export function decodeUpload(
  { weights, predictions, ...measured }: ModelUpload,
  blank: ModelFiles,
): TrainedCell {
  const bytes = Uint8Array.from(Buffer.from(weights, 'base64'));
  const wanted = blank['weights.bin'].byteLength;
  if (bytes.byteLength !== wanted)
    throw wrongModel(`it has ${bytes.byteLength} bytes of weights, but a model of its kind has ${wanted}`);
  if (!new Float32Array(bytes.buffer).every(Number.isFinite)) throw wrongModel('a weight is not finite');
  const { losses, bestEpoch = losses.length, holdOut, displayRange } = measured;
  if (losses.some(({ epoch }, i) => epoch !== i + 1)) throw wrongModel('its epochs are not numbered from 1');
  if (bestEpoch > losses.length)
    throw wrongModel(`its best epoch is ${bestEpoch}, but it has ${losses.length} epochs`);
  if (displayRange && displayRange[0] >= displayRange[1]) throw wrongModel('its display range is empty');
  if (holdOut?.from !== undefined) parseInstant(holdOut.from, 'holdOut.from');
  const { truth = [], predicted = [] } = predictions ?? {};
  if (truth.length !== predicted.length) throw wrongModel('not every prediction has a true value');
  return {
    ...measured,
    files: { 'model.json': blank['model.json'], 'weights.bin': bytes },
    epochs: losses.length,
    bestEpoch,
    ...(predictions && {
      predictions: { truth: Float32Array.from(truth), predicted: Float32Array.from(predicted) },
    }),
  };
}

/**
 * Returns the files of an untrained model, built in a separate process. The topology does not depend on the engine. Rejects with the
 * reason of the signal if it aborts, and with TW_TRAIN_MODEL, TW_TRAIN_ENGINE, TW_TRAIN_FAILED.
 */
export async function untrainedModel(
  blank: { model: string; seed: number; choice?: ModelChoice },
  signal: AbortSignal,
): Promise<ModelFiles> {
  const child = new EngineProcess<TrainingHandlers>(TRAINING_WORKER, 'wasm');
  try {
    return await child.request('build', blank, { signal });
  } catch (error) {
    if (!(error instanceof ProcessEnded)) throw error;
    throw trainingFailed.because(error, `the model was not built (${error.message})`);
  } finally {
    child.close();
  }
}

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
    const trained = decodeUpload(
      sent,
      await untrainedModel({ model, seed, choice: sent.choice }, job.signal),
    );
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
