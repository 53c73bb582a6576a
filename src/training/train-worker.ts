/**
 * Child process that trains one cell after another on one engine, or builds an untrained model. Started by train-pool.ts and
 * remote-training.ts.
 */
import { createHash } from 'node:crypto';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import {
  type EngineName,
  engineMemory,
  type LoadedEngine,
  loadEngine,
  serveRequests,
} from '../engines/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import { version as software } from '../version.js';
import type { ReadRasters } from './acquisitions.js';
import { adaptCell, groundSeenByBase } from './adaptation.js';
import { servedSpec } from './candidates.js';
import { dateErrors } from './date-errors.js';
import { memoryLimitExceeded, trainingFailed } from './errors.js';
import { type EpochLosses, evaluateValidation, type Metrics } from './evaluation.js';
import { encodeSample } from './fine-tuning.js';
import type { DisplayRange } from './image-metrics.js';
import { getModelSpec } from './models/builtin.js';
import { buildModel } from './models/network.js';
import type { ModelSpec } from './models/spec.js';
import { saveModel } from './models/weights.js';
import { subsamplePatches, type TrainValidationPatches, withoutHistoryPlanes } from './patches.js';
import { bandsSuffice, hasHistory, loadBase, placeStatistics, scoreBase, trainChosen } from './selection.js';
import { scoreTile } from './tile-scores.js';
import {
  type AdaptationStep,
  readCellDataset,
  type TrainCellTask,
  type TrainingHandlers,
} from './train-task.js';
import { trainModel } from './training-loop.js';

const [engine] = process.argv.slice(2);

/** Bands read for one cell, for its next model and for the tile scores of its last one. */
let cachedRasters: { cell?: string; rasters: ReadRasters } | undefined;

serveRequests<TrainingHandlers>(
  {
    async build({ model, seed, choice }) {
      const { tf } = await loadEngine(engine as EngineName);
      return saveModel(tf, buildModel(tf, servedSpec(getModelSpec(model), choice), seed));
    },
    async train(request, report) {
      try {
        return await train(request, report);
      } catch (error) {
        throw toKnownError(error, request.limit);
      } finally {
        if (!request.keep) cachedRasters = undefined;
      }
    },
  },
  trainingFailed,
);

/**
 * Out-of-memory messages of V8, the engines and the system. Failed allocations in WebAssembly return address 0, and later fail with an
 * access out of bounds.
 */
const NO_MEMORY =
  /out of memory|allocation failed|memory access out of bounds|unable to grow|could not allocate|bad_alloc|ENOMEM|\bOOM\b/i;

function toKnownError(error: unknown, limit?: number): TilewrightError {
  const message = messageOf(error);
  if (limit !== undefined && (engineMemory.is(error) || NO_MEMORY.test(message)))
    return memoryLimitExceeded.because(error, limit, message);
  return error instanceof TilewrightError ? error : trainingFailed.because(error, message);
}

const train: TrainingHandlers['train'] = async ({ task, keep }, report) => {
  const loaded = await loadEngine(engine as EngineName);
  const { tf } = loaded;
  const started = performance.now();
  const { model: name, seed, epochs, patience, start, fineTuning, checkpoint } = task;
  const spec = getModelSpec(name);
  const data = await readCellDataset(spec, task, rastersFor(task, keep));
  if ('skipped' in data) return { skipped: data.skipped };
  const { source, bytesRead } = data;
  const { adaptation } = task;
  // A base that reads histories does not know ground that has changed since.
  const isChanged = adaptation?.step === 'fine-tune' && adaptation.hasChanged;
  const shared = adaptation?.choice && !isChanged && { ...adaptation, choice: adaptation.choice };
  const startsFromBands = adaptation && !adaptation.choice;
  const statistics =
    !shared && !startsFromBands && hasHistory(data.dataset) ? placeStatistics(spec, data.dataset) : undefined;
  const readsBands = startsFromBands || (statistics && bandsSuffice(spec, statistics));
  const dataset = readsBands ? withoutHistoryPlanes(spec, data.dataset) : data.dataset;
  const trainedDates = dataset.trainingImages.map((i) => task.dates[i]!);
  const dates = trainedDates.map(({ time }) => new Date(time).toISOString());
  const scoreTileOf = (model: LayersModel, range: DisplayRange) =>
    scoreTile(tf, model, spec, range, source, cachedRasters?.rasters);
  const dateErrorsOf = async (model: LayersModel) =>
    spec.target.kind === 'clear'
      ? undefined
      : dateErrors(tf, model, spec, task.dates, dataset.holdOut.window, {
          kept: cachedRasters?.rasters,
          ...(dataset.history && { history: { dates: trainedDates, use: dataset.history.use } }),
        });
  const onEpoch = (epoch: EpochLosses) => report({ epoch, memory: 1024 * process.resourceUsage().maxRSS });
  const seconds = () => (performance.now() - started) / 1000;
  const leak = adaptation && groundSeenByBase(dataset, adaptation);
  if (leak) return { skipped: leak };
  if (adaptation?.step === 'sample') {
    const patches = subsamplePatches(dataset.train, adaptation.patches);
    return { sample: encodeSample({ cell: task.cell ?? task.id, dates, patches }) };
  }
  if (shared && hasHistory(dataset)) {
    const { model, ...scored } = await scoreBase(tf, spec, dataset, shared, {
      ...{ seed, scoreTile: scoreTileOf, dates },
    });
    const errors = await dateErrorsOf(model);
    const files = await saveModel(tf, model);
    model.dispose();
    return {
      trained: {
        ...scored,
        ...{ files, epochs: 0, bytesRead, seconds: seconds() },
        ...(errors && { dateErrors: errors }),
      },
    };
  }
  if (adaptation && !adaptation.choice) {
    const options = { scoreTile: scoreTileOf, dateErrorsOf, onEpoch, elapsed: seconds };
    const adapted = await adaptCell(loaded, spec, dataset, task, adaptation, options);
    return { trained: { ...adapted, bytesRead } };
  }
  const options = {
    seed,
    epochs,
    patience,
    start,
    fineTuning,
    scoreTile: scoreTileOf,
    onEpoch,
    checkpoint: checkpoint === undefined ? undefined : { path: checkpoint, task: fingerprint(task, loaded) },
  };
  const { model, ...result } =
    statistics && hasHistory(dataset)
      ? await trainChosen(tf, spec, dataset, statistics, { ...options, dates })
      : await trainModel(tf, spec, dataset, options);
  const errors = await dateErrorsOf(model);
  const files = await saveModel(tf, model);
  model.dispose();
  const base = adaptation?.choice && {
    base: { id: adaptation.base.id, version: adaptation.base.version },
    ...{ factor: 1, patches: dataset.train.count, others: 0 },
    errors: { base: await baseScore(loaded, spec, data.dataset, adaptation) },
  };
  return {
    trained: {
      ...result,
      ...(base && { adaptation: base }),
      files,
      epochs: result.losses.length,
      bytesRead,
      seconds: seconds(),
      ...(errors && { dateErrors: errors }),
    },
  };
};

/** The score of a base that reads histories on the validation patches of a place. */
async function baseScore(
  { tf }: LoadedEngine,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  { base, choice }: Pick<AdaptationStep, 'base' | 'choice'>,
): Promise<Metrics> {
  const model = await loadBase(tf, spec, { base, choice: choice!, seed: 0 });
  try {
    return evaluateValidation(tf, model, dataset);
  } finally {
    model.dispose();
  }
}

/** Returns the bands read so far for the cell of a task; undefined if they are not needed again. */
function rastersFor({ cell }: TrainCellTask, keep: boolean): ReadRasters | undefined {
  if (cachedRasters?.cell !== cell) cachedRasters = undefined;
  if (keep) cachedRasters ??= { cell, rasters: new Map() };
  return cachedRasters?.rasters;
}

/** Digest of everything that affects the result. Files of tiles never change; their paths contain their versions. */
function fingerprint({ checkpoint: _, ...task }: TrainCellTask, { name, version }: LoadedEngine): string {
  return createHash('sha256')
    .update(JSON.stringify([software, name, version, task]))
    .digest('hex');
}
