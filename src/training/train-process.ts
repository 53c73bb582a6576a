/** Training as a job, in one of its modes. */
import { ENGINE_NAMES, selectEngineCached } from '../engines/index.js';
import type { JobContext, Process } from '../jobs/index.js';
import { checkFilter, filterSchema, requireCollections } from '../query/index.js';
import { listOf } from '../utils/json-schema.js';
import { plural } from '../utils/text.js';
import { dayOf } from './dates.js';
import { trainDistributed } from './distributed-mode.js';
import {
  nothingTrained,
  oneModelDistributed,
  unusableHoldOut,
  unusedMemoryLimit,
  unusedStale,
  unusedTransfer,
} from './errors.js';
import { HISTORY_USES } from './history.js';
import { copyWarnings } from './hold-out.js';
import { FREEZING_SCHEDULES } from './learner.js';
import { TRAINING_MODES, TRANSFER_POLICIES, type TrainingMode } from './model-card.js';
import { MODEL_NAMES } from './models/builtin.js';
import { trainPerCell } from './per-cell-mode.js';
import { trainRegional, withBaseOfJob } from './regional-mode.js';
import {
  requestedModels,
  type TrainContext,
  type TrainInputs,
  trainingMode,
  validationTime,
  withSelection,
} from './train-inputs.js';
import {
  emptyResults,
  mergeResults,
  type PartialTrainResults,
  summariseReasons,
  TRAIN_PART,
  type TrainResults,
} from './train-results.js';
import { type StaleSelection, trainStale } from './train-stale.js';

const MODES: Record<
  TrainingMode,
  (
    context: TrainContext,
    inputs: TrainInputs,
    job: JobContext,
    stale?: StaleSelection,
  ) => Promise<PartialTrainResults>
> = {
  partitioned: trainPerCell,
  distributed: trainDistributed,
  contained: trainPerCell,
  regional: trainRegional,
};

/** True for a day that exists, such as 2020-06-30. */
const isDay = (text: string) => {
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && dayOf(time) === text;
};

/** Maximum number of cells that a retry lists in its filter. */
const MAX_RETRY_CELLS = 5000;

const OBJECTS = listOf({ type: 'object' });
const OUTPUTS = {
  engine: { title: 'Engine', schema: { type: 'string' } },
  mode: { title: 'How the work was divided', schema: { type: 'string' } },
  models: { title: 'Models with their metrics', schema: OBJECTS },
  skipped: { title: 'Places without a model, with reasons', schema: OBJECTS },
  failed: { title: 'Places that failed, with reasons', schema: OBJECTS },
  pooled: { title: 'Scores over all places', schema: { type: 'object', nullable: true } },
  questions: {
    title: 'Scores on other ground, on other dates, and on both, with intervals, if places have a history',
    schema: OBJECTS,
  },
  base: { title: 'Base model that a regional training has trained', schema: { type: 'object' } },
  checked: { title: 'With stale: places by the state of their models', schema: { type: 'object' } },
  leftOut: { title: 'With stale: places that were not trained again, with reasons', schema: OBJECTS },
  basePlaces: {
    title: 'Number of places on which the base model of the regional mode was trained',
    schema: { type: 'integer' },
  },
  since: {
    title: 'With stale: the first date of the changes of the trained places',
    schema: { type: 'string' },
  },
  estimatedSeconds: {
    title: 'With stale: estimated duration of the trainings, the part of the budget that is used',
    schema: { type: 'number' },
  },
  seconds: { title: 'Duration in seconds', schema: { type: 'number' } },
};

export function trainProcess(context: TrainContext): Process {
  return {
    id: 'train',
    title: 'Train models',
    description:
      'Trains one small model for each place that matches the filter, or one for all places with all nodes.',
    inputs: {
      type: 'object',
      required: ['model'],
      additionalProperties: false,
      properties: {
        model: {
          anyOf: [
            { enum: MODEL_NAMES },
            { type: 'array', minItems: 1, uniqueItems: true, items: { enum: MODEL_NAMES } },
          ],
          description:
            'Kind of model, or several kinds, for which each place is read once. The distributed and the regional mode train one',
        },
        mode: {
          enum: TRAINING_MODES,
          description:
            'One model for each place, one model for all places by all nodes, one model for each place in processes with limits, or one model for all places that each place then adapts. The default is regional for ndvi or ndmi alone, at several places of one collection without a transfer; else partitioned',
        },
        filter: filterSchema,
        epochs: { type: 'integer', minimum: 1, maximum: 10_000 },
        patience: {
          type: 'integer',
          minimum: 1,
          maximum: 10_000,
          description:
            'Stops a training if the loss on the selection patches has not improved for this number of epochs. By default all epochs are run; the best one is kept either way',
        },
        validationFrom: {
          type: 'string',
          format: 'date-time',
          description:
            'Dates from this time on are held out for validation at all places. By default the last quarter of the tiles',
        },
        holdOut: {
          type: 'array',
          minItems: 1,
          maxItems: 100,
          uniqueItems: true,
          items: { type: 'string', format: 'date' },
          description: 'Days that are held out for validation at all places, instead of the last ones',
        },
        history: {
          enum: HISTORY_USES,
          default: 'all',
          description:
            'What a model reads of the other dates of its place: all, those before the date, or none. Acquisitions within three days of the date never count',
        },
        seed: { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 },
        engine: { enum: ENGINE_NAMES },
        placeMemory: {
          type: 'integer',
          minimum: 1_000_000,
          maximum: 1e15,
          description: 'Memory limit of the process of a place in bytes, only in the contained mode',
        },
        transfer: {
          enum: TRANSFER_POLICIES,
          default: 'none',
          description:
            'The model that each place starts from: none, the model of a random place of another cluster, of the most similar place of its cluster, or the best of several on some of its patches. A place without such a model starts fresh. Only in the modes partitioned and contained',
        },
        fineTuning: {
          enum: FREEZING_SCHEDULES,
          default: 'all',
          description:
            'Layers that are trained if the training starts from another model: all, only the last ones, or only the last ones for a third of the epochs',
        },
        base: {
          type: 'string',
          maxLength: 200,
          description:
            'Id of the model that the places adapt in the regional mode. By default one is trained',
        },
        fresh: {
          type: 'boolean',
          default: true,
          description:
            'Regional mode: also trains a fresh model of each place, and records its score beside that of the adapted one',
        },
        stale: {
          type: 'boolean',
          default: false,
          description:
            'Trains only the places whose models have drifted, as the process check finds them. Not in the distributed mode',
        },
        budget: {
          type: 'number',
          minimum: 0,
          description:
            'With stale: limit of the sum of the seconds that the trainings of the places take, estimated from the last ones, over all nodes. The places with the largest gain for each second are trained. Default: no limit',
        },
        store: {
          type: 'boolean',
          default: true,
          description:
            'False: the models are trained and scored, but not stored. The results then contain their losses',
        },
        curriculum: {
          type: 'boolean',
          default: false,
          description:
            'Trains the most typical place of each cluster first; the others start from these models according to `transfer`',
        },
      },
    },
    outputs: OUTPUTS,
    check: (inputs) => {
      checkFilter(inputs);
      const { placeMemory, transfer = 'none', ...rest } = inputs as TrainInputs;
      const mode = trainingMode(inputs as TrainInputs);
      const models = requestedModels(rest);
      validationTime(rest);
      const unreal = rest.holdOut?.find((day) => !isDay(day));
      if (unreal !== undefined)
        throw unusableHoldOut(`${unreal} is not a day of the calendar`, 'Write days such as 2020-06-30.');
      if (rest.holdOut && rest.validationFrom !== undefined)
        throw unusableHoldOut('both holdOut and validationFrom were given', 'Give one of them.');
      const isShared = mode === 'distributed' || mode === 'regional';
      if (isShared && models.length > 1) throw oneModelDistributed(models.join(', '));
      if (placeMemory !== undefined && mode !== 'contained') throw unusedMemoryLimit(mode);
      if (isShared && transfer !== 'none')
        throw unusedTransfer(`transfer ${transfer}`, 'the mode partitioned or contained');
      const { curriculum = false, fineTuning = 'all', store = true, base, fresh } = rest;
      if (mode !== 'regional' && (base !== undefined || fresh === false))
        throw unusedTransfer(base === undefined ? 'fresh' : `base ${base}`, 'the mode regional');
      if (curriculum && !store)
        throw unusedTransfer('curriculum', 'stored models: the other places start from them');
      checkStale(rest, mode, models, transfer);
      if (transfer === 'none' && (curriculum || fineTuning !== 'all'))
        throw unusedTransfer(
          curriculum ? 'curriculum' : `fineTuning ${fineTuning}`,
          'a transfer, such as similar',
        );
    },
    prepare: async (inputs, job) => withSelection(context.finder, inputs as TrainInputs, job),
    // Each model is stored completely; models that the job stored before an interruption are kept.
    resumable: true,
    merge: (parts) => mergeResults(parts as PartialTrainResults[]),
    part: TRAIN_PART,
    conclude: (results, context) => conclude(results as TrainResults, context),
    retryInputs: async (inputs, results) => failedInputs(inputs as TrainInputs, results as TrainResults),
    repeatInputs: async (inputs, job) => withBaseOfJob(context.storage, inputs as TrainInputs, job),
    usesBarrier: (inputs) => {
      const { mode, curriculum = false, stale = false } = inputs as TrainInputs;
      return mode === 'distributed' || mode === 'regional' || curriculum || stale;
    },
    run: async (given, job) => {
      const inputs = given as TrainInputs;
      await requireCollections(context.storage, inputs.filter);
      const { stale = false } = inputs;
      const mode = trainingMode(inputs);
      if (!stale) return MODES[mode](context, inputs, job);
      const engine = await selectEngineCached(inputs.engine);
      return trainStale(context, inputs, job, emptyResults(engine.name, mode), MODES[mode]);
    },
  };
}

/** Throws TW_TRAIN_STALE. */
function checkStale(
  { stale = false, budget, curriculum = false, validationFrom }: Omit<TrainInputs, 'model'>,
  mode: TrainingMode,
  models: string[],
  transfer: string,
): void {
  if (!stale && budget !== undefined) throw unusedStale('budget needs stale; set stale, or leave out budget');
  if (!stale) return;
  if (mode === 'distributed')
    throw unusedStale(
      'the mode distributed trains one model of all places; use partitioned, contained or regional',
    );
  if (models.length > 1)
    throw unusedStale(`a job trains one model again, not ${models.join(', ')}; start a job for each`);
  if (validationFrom !== undefined)
    throw unusedStale('all dates since a change are needed for the training; leave out validationFrom');
  if (transfer !== 'none' || curriculum)
    throw unusedStale('a transfer needs all places of a cluster; leave out transfer and curriculum');
}

/** Returns the inputs of a run over the cells that failed; null if none failed. */
function failedInputs(
  inputs: TrainInputs,
  { failed, base, mode = trainingMode(inputs) }: Partial<TrainResults>,
): TrainInputs | null {
  if (!failed?.length) return null;
  const geocodes = [...new Set(failed.map(({ geocode }) => geocode))];
  const query = (inputs.filter?.query ?? {}) as { geocode?: object };
  // The places of a region share patches, and can keep their base.
  if (mode === 'regional') return base ? { ...inputs, base: base.id } : inputs;
  // The places that were trained have not drifted any more.
  if (inputs.stale) return inputs;
  // One model for all cells needs all of them. All cells are retried if the query is text, or compares geocodes by more than a list.
  const isOther = typeof query !== 'object' || Object.keys(query.geocode ?? {}).some((name) => name !== 'in');
  if (mode === 'distributed' || isOther || geocodes.length > MAX_RETRY_CELLS) return inputs;
  const filter = { ...inputs.filter, query: { ...query, geocode: { in: geocodes } } };
  // The representatives of the clusters have their models now.
  return { ...inputs, mode, curriculum: false, filter };
}

/** Throws TW_TRAIN_NOTHING. */
function conclude(results: TrainResults, { message, log }: Pick<JobContext, 'message' | 'log'>): void {
  const { base, models: trained, skipped, failed, checked, leftOut = [] } = results;
  message(
    `${plural(trained.length, 'model')} trained${trained.some(({ losses }) => losses) ? ', none stored' : ''}, ${skipped.length} skipped${failed.length > 0 ? `, ${failed.length} failed` : ''}${checked ? `, ${leftOut.length} left out` : ''}`,
  );
  const reported = base ? [base] : trained;
  for (const text of copyWarnings(reported.flatMap(({ copies = [] }) => copies))) log('warning', text);
  if (trained.length > 0) return;
  // Nothing had to be trained, or the budget was too small.
  if (checked && skipped.length + failed.length === 0) return;
  const without = [...skipped, ...failed];
  const models = [...new Set(without.map(({ model }) => model))];
  // Every cell occurs once for each model.
  throw nothingTrained(without.length / Math.max(1, models.length), summariseReasons(results, models));
}
