/** The `score` process of the job system: a stored model on other land or dates, without training and without new tiles. */

import { availableParallelism } from 'node:os';
import { mapConcurrent } from '../../async/index.js';
import { selectedTiles } from '../../derive/index.js';
import { ENGINE_NAMES, selectEngineCached } from '../../engines/index.js';
import { TilewrightError } from '../../errors.js';
import {
  addFailure,
  addFetched,
  addSkipped,
  emptyCounts,
  firstReasons,
  type JobContext,
  mergeCounts,
  type Process,
  sumOf,
  TILE_COUNTS_SCHEMA,
  type TileCounts,
} from '../../jobs/index.js';
import {
  checkFilter,
  defaultToRawSource,
  type FilterParams,
  filterSchema,
  parseFilter,
  requireCollections,
  type TileFinder,
} from '../../query/index.js';
import {
  type ModelVersionRecord,
  modelNotFound,
  modelVersionNotFound,
  type Storage,
  type TileRecord,
  versionNamed,
  withPinnedTiles,
} from '../../storage/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { compareText, plural } from '../../utils/text.js';
import { datedOf, timesOf } from '../dates.js';
import { notScored } from '../errors.js';
import { pooledTargetStatistics, rSquared } from '../evaluation.js';
import { copyWarnings } from '../hold-out.js';
import type { CardSummary } from '../model-card.js';
import { getModelSpec } from '../models/builtin.js';
import { requiredBands } from '../models/spec.js';
import { historyTiles, planReading, verifiedModelFiles } from '../predict-plan.js';
import { PredictPool } from '../predict-process.js';
import { type QuestionScore, questionScores, type Scores, scoresOf } from '../questions.js';
import type { Question, QuestionErrors } from '../report.js';
import { COMPARED, type ErrorSums, type GroundErrors } from '../tile-errors.js';
import { type TrainingGround, trainingGround } from './training-ground.js';

interface ScoreInputs {
  /** Id of a model. */
  model: string;
  version?: string;
  filter?: FilterParams;
  engine?: string;
}

interface ScoreContext {
  storage: Storage;
  finder: TileFinder;
  /** Maximum number of tiles scored in parallel. */
  cores?: number;
}

/** The errors of one tile on one of two grounds. */
interface Scored extends GroundErrors {
  tile: string;
  /** Grid and geocode: tiles of several collections are of one place. */
  place: string;
  /** RFC 3339. */
  datetime: string;
  isTrainingDate: boolean;
}

/** The results of one run. Plain JSON. */
interface ScorePart extends TileCounts {
  scored: Scored[];
  lost: string[];
}

const SUMS = objectOf(
  Object.fromEntries(
    COMPARED.map((name) => [name, objectOf({ squares: NUMBER, errors: NUMBER, sizes: NUMBER })]),
  ),
);
const FLAG = { type: 'boolean' };
const PART = objectOf(
  {
    ...TILE_COUNTS_SCHEMA,
    scored: listOf(
      objectOf(
        {
          ...{ tile: TEXT, place: TEXT, datetime: TEXT, isTrainingDate: FLAG, isTrainedGround: FLAG },
          truth: objectOf({ count: COUNT, mean: NUMBER, squares: NUMBER }),
        },
        { applied: SUMS, blind: SUMS, copies: listOf(listOf(TEXT)) },
      ),
    ),
    lost: listOf(TEXT),
  },
  { bytesFetched: COUNT },
);

/** Measures of the errors over all values. R2 decides nothing: little variance makes it small. */
interface Measures {
  mse: number;
  rmse: number;
  /** Mean error: positive if values are predicted too large. */
  bias: number;
  mae: number;
  r2: number;
}

export interface ScoreResults extends TileCounts {
  model: string;
  version: string;
  /** The mean of the training, from which skill is counted. */
  mean: number;
  /** The unit of the values: `pixels`, or `means of 16 x 16 pixels` for models that predict means. */
  unit: string;
  /** Number of values, without those on ground and dates that trained the model. */
  values: number;
  /** Pixels, places and dates that trained the model, which are not scored. */
  trained: { values: number; places: number; dates: number };
  /** Errors of the model and of the simple baselines over all values. Absent without any. */
  measures?: Record<(typeof COMPARED)[number], Measures>;
  /** Over all values, with intervals over places and dates. */
  pooled?: Scores;
  questions: QuestionScore[];
  /** The first places, the worst first. */
  places: { place: string; values: number; dates: number; rmse: number; skill: number }[];
}

const MAX_PLACES = 1000;

const OBJECT = { type: 'object' };
const OUTPUTS = {
  tiles: { title: 'Tiles that were read', schema: COUNT },
  skipped: {
    title: 'Tiles that were left out, by reason',
    schema: { ...OBJECT, additionalProperties: COUNT },
  },
  unit: { title: 'What is compared: pixels, or means of some', schema: TEXT },
  values: { title: 'Scored values', schema: COUNT },
  trained: {
    title: 'Values, places and dates that trained the model, which are not scored',
    schema: objectOf({ values: COUNT, places: COUNT, dates: COUNT }),
  },
  mean: { title: 'Mean of the training', schema: NUMBER },
  measures: {
    title:
      'Errors of the model, of the training mean, of the history and of the nearest date over all values',
    schema: {
      ...OBJECT,
      additionalProperties: objectOf({ mse: NUMBER, rmse: NUMBER, bias: NUMBER, mae: NUMBER, r2: NUMBER }),
    },
  },
  pooled: { title: 'The error and the skill over all values, with 95 % intervals', schema: OBJECT },
  questions: { title: 'The same for other ground, other dates, and both', schema: listOf(OBJECT) },
  places: { title: 'The first places, the worst first', schema: listOf(OBJECT) },
  warnings: { title: 'Limits of the scores', schema: listOf(TEXT) },
};

export function scoreProcess(context: ScoreContext): Process {
  return {
    id: 'score',
    title: 'Score a model',
    description:
      'Applies a stored model of NDVI or NDMI to other land or dates, and compares it with the measured pixels, without training and without new tiles: errors beside those of simple baselines, with intervals. Ground and dates that trained the model are counted apart.',
    inputs: {
      type: 'object',
      required: ['model'],
      additionalProperties: false,
      properties: {
        model: {
          type: 'string',
          maxLength: 200,
          pattern: '^[a-z-]+_.+_[gq].*$',
          description: 'Id of a model, such as ndvi_sample_gu26xg',
        },
        version: {
          type: 'string',
          maxLength: 40,
          default: 'latest',
          description: 'latest, best, or the name of a version',
        },
        filter: filterSchema,
        engine: { enum: ENGINE_NAMES },
      },
    },
    outputs: OUTPUTS,
    resumable: true,
    // A version that is stored in the meantime must not be scored by some runs.
    prepare: async (inputs) => {
      const { version } = await scoredModel(context, inputs as ScoreInputs);
      return { ...(inputs as ScoreInputs), version };
    },
    check: (inputs) => {
      checkFilter(inputs);
      refuseOtherKinds(inputs as ScoreInputs);
    },
    merge: (parts) => mergeParts(parts as ScorePart[]),
    part: PART,
    run: (inputs, job) => scoreTiles(context, inputs as ScoreInputs, job),
    conclude: (part, job, inputs) => concludeScore(context, part as ScorePart, inputs as ScoreInputs, job),
  };
}

/** Throws TW_TRAIN_SCORE. */
function refuseOtherKinds({ model }: ScoreInputs): void {
  if (model.startsWith('classifier_'))
    throw notScored(
      model,
      'it is a classifier, which the process score-classifier scores on labels (tilewright score ID --labels FILE)',
    );
  if (model.startsWith('cloud-removal_'))
    throw notScored(
      model,
      `what a cloud hides was not measured; the scores of its training, on clear dates, are in its card (tilewright models ${model})`,
    );
}

/** Throws TW_STORAGE_NO_MODEL, TW_STORAGE_NO_MODEL_VERSION and TW_TRAIN_SCORE. */
async function scoredModel({ storage }: ScoreContext, { model: id, version = 'latest' }: ScoreInputs) {
  const record = await storage.models.get(id);
  if (!record) throw modelNotFound(id);
  const model = versionNamed(record, version);
  if (!model) throw modelVersionNotFound(id, version);
  const { trainingMean: mean } = model.card as CardSummary;
  if (mean === undefined) throw notScored(id, 'its card lacks the mean of its training; train it again');
  return { model, mean, version: model.version };
}

async function scoreTiles(context: ScoreContext, inputs: ScoreInputs, job: JobContext): Promise<ScorePart> {
  const { storage, cores = availableParallelism() } = context;
  await requireCollections(storage, inputs.filter);
  const { model, mean } = await scoredModel(context, inputs);
  const training = await trainingGround(storage, model);
  const filter = defaultToRawSource(parseFilter({ collections: [model.collection], ...inputs.filter }));
  const engine = await selectEngineCached(inputs.engine);
  job.message(`scoring ${model.id} with ${engine.name}`);
  const part: ScorePart = { ...emptyCounts(), scored: [], lost: training.lost };
  let total = 0;
  for await (const _ of selectedTiles(storage, filter, job.isMine)) total++;
  const pool = new PredictPool(engine.name, cores);
  const scoreTile = async (tile: TileRecord) => {
    job.signal.throwIfAborted();
    try {
      const errors = await tileScore({ ...context, pool, training, model, mean, part }, tile, job);
      if (typeof errors === 'string') addSkipped(part, errors);
      else {
        part.scored.push(...errors);
        part.tiles++;
      }
    } catch (error) {
      if (job.signal.aborted || (error instanceof TilewrightError && error.status === 503)) throw error;
      addFailure(part, job, tile.id, error, notScored);
    }
    const skipped = Object.values(part.skipped).reduce((sum, count) => sum + count, 0);
    job.progress({ total, done: part.tiles, failed: part.failures, skipped });
  };
  try {
    await mapConcurrent(selectedTiles(storage, filter, job.isMine), 2 + pool.threads, scoreTile);
  } finally {
    pool.close();
  }
  return part;
}

type TileContext = ScoreContext & {
  pool: PredictPool;
  training: TrainingGround;
  model: ModelVersionRecord;
  mean: number;
  part: ScorePart;
};

/** Returns the errors on each ground, or the reason why the tile is left out. */
async function tileScore(
  { storage, finder, pool, training, model, mean, part }: TileContext,
  tile: TileRecord,
  job: JobContext,
): Promise<Scored[] | string> {
  const spec = getModelSpec(model.model);
  const neighbours = {
    ...{ storage, finder, filesOf: verifiedModelFiles(storage) },
    modelOf: async () => undefined,
  };
  const bands = requiredBands(spec);
  const reading = await planReading(storage, model, tile, { bands, neighbours, dilate: 0 });
  if ('skipped' in reading) return reading.skipped;
  const { historyUse: use = 'all', planned } = reading;
  if (planned?.isPartial)
    for (const text of planned.warnings) job.log('warning', `${tile.id}: ${text}; score it again later`);
  const otherDates = reading.historyUse ? reading.history : await historyTiles(storage, spec, tile, use);
  const isOther = tile.collection !== model.collection;
  const trainedDates = isOther
    ? await historyTiles(storage, spec, { ...tile, collection: model.collection }, 'all')
    : [];
  const histories = [...otherDates, ...trainedDates].map((other) => other.tile);
  const read = [tile, ...histories, ...(planned?.tiles ?? [])];
  const isTrainingDate = training.isTrainingDate(datedOf(tile));
  const errors = await withPinnedTiles(
    storage,
    read.map((tile) => ({ tile, groups: tile.groups })),
    async (fetched) => {
      addFetched(part, fetched);
      const task = {
        ...(await reading.task()),
        ...{ mean, isTrainingDate, trained: training.cellsAround(tile) },
        otherDates: { dates: otherDates.map(({ date }) => date), use },
        trainedDates: trainedDates.map(({ date }) => date),
      };
      return pool.score(task, job.signal);
    },
  );
  if (errors.length === 0)
    return 'none of their pixels is measured and predicted: cloud covers them, or they are smaller than a patch of the model';
  const datetime = timesOf(datedOf(tile));
  const place = `${tile.grid} ${tile.geocode}`;
  return errors.map((one) => ({ tile: tile.id, place, datetime, isTrainingDate, ...one }));
}

function mergeParts(parts: ScorePart[]): ScorePart {
  const scored = parts.flatMap((part) => part.scored);
  return {
    ...mergeCounts(parts),
    // In a fixed order, because sums of floating-point numbers depend on it.
    scored: scored.sort((a, b) => compareText(a.tile, b.tile) || +a.isTrainedGround - +b.isTrainedGround),
    lost: [...new Set(parts.flatMap(({ lost }) => lost))],
  };
}

type ScoredSums = Scored & { applied: ErrorSums };

const rowOf = ({ place, datetime, truth }: Scored, sums: ErrorSums) => ({
  ...{ place, datetime, values: truth.count },
  ...(Object.fromEntries(COMPARED.map((name) => [name, sums[name].squares])) as Record<
    keyof ErrorSums,
    number
  >),
});

function questionsOf(one: ScoredSums): QuestionErrors[] {
  const { isTrainedGround, isTrainingDate, applied, blind } = one;
  const ask = (question: Question, sums: ErrorSums) => ({ question, ...rowOf(one, sums) });
  if (isTrainedGround) return [ask('otherDates', applied)];
  const question = isTrainingDate ? 'otherGround' : 'otherGroundAndDates';
  return [ask(question, blind ?? applied), ...(blind ? [ask(`${question}Known`, applied)] : [])];
}

async function concludeScore(
  context: ScoreContext,
  part: ScorePart,
  inputs: ScoreInputs,
  job: Pick<JobContext, 'message' | 'log'>,
): Promise<ScoreResults> {
  const { model, mean, version } = await scoredModel(context, inputs);
  const { scored, lost, ...counts } = part;
  if (part.tiles === 0) {
    const skipped = Object.entries(part.skipped).map(
      ([reason, tiles]) => `${plural(tiles, 'tile')}: ${reason}`,
    );
    const reasons = [...firstReasons(part), ...skipped];
    const none = 'no tile matches the filter; "tilewright search" lists tiles';
    throw notScored(model.id, reasons.length > 0 ? `no tile can be used (${reasons.join('; ')})` : none);
  }
  const { target, patchSize } = getModelSpec(model.model);
  const isScored = (one: Scored): one is ScoredSums => one.applied !== undefined;
  const used = scored.filter(isScored);
  const trained = scored.filter((one) => !isScored(one));
  const distinct = (values: string[]) => new Set(values).size;
  const byPlace = new Map<string, ScoredSums[]>();
  for (const sums of used) {
    const ofPlace = byPlace.get(sums.place);
    if (ofPlace) ofPlace.push(sums);
    else byPlace.set(sums.place, [sums]);
  }
  const pool = (some: ScoredSums[]) =>
    scoresOf(
      some.map((one) => rowOf(one, one.applied)),
      { places: true, dates: true },
    );
  const values = sumOf(used, ({ truth }) => truth.count);
  const unit = target.kind === 'mean' ? `means of ${patchSize} x ${patchSize} pixels` : 'pixels';
  job.message(`${values} ${unit} of ${plural(part.tiles, 'tile')}`);
  const places = Array.from(byPlace, ([place, some]) => {
    const { errors, skill, dates } = pool(some);
    const values = sumOf(some, ({ truth }) => truth.count);
    return { place, values, dates, rmse: Math.sqrt(errors.model), skill: skill.model.value };
  });
  // A tile may have errors on two grounds.
  const copiesByTile = new Map(scored.flatMap(({ tile, copies }) => (copies ? [[tile, copies]] : [])));
  const warnings = [
    ...copyWarnings([...copiesByTile.values()].flat()),
    ...(used.length === 0
      ? ['all of it trained the model, so it says nothing about its skill; select other land or dates']
      : []),
    ...lost.map(
      (parent) =>
        `it started from ${parent}, which was deleted: ground and dates that trained only that model are scored as others`,
    ),
  ];
  for (const text of warnings) job.log('warning', text);
  return {
    ...{ model: model.id, version, mean, ...counts, unit, values },
    trained: {
      values: sumOf(trained, ({ truth }) => truth.count),
      places: distinct(trained.map(({ place }) => place)),
      dates: distinct(trained.map(({ datetime }) => datetime.slice(0, 10))),
    },
    ...(used.length > 0 && { measures: measuresOf(used), pooled: pool(used) }),
    questions: questionScores(
      Object.fromEntries(Array.from(byPlace, ([place, some]) => [place, some.flatMap(questionsOf)])),
    ),
    places: places.sort((a, b) => b.rmse - a.rmse || compareText(a.place, b.place)).slice(0, MAX_PLACES),
  };
}

function measuresOf(scored: ScoredSums[]): Record<keyof ErrorSums, Measures> {
  const truth = pooledTargetStatistics(scored.map((one) => one.truth));
  const measures = COMPARED.map((name) => {
    const sum = (of: keyof ErrorSums['model']) => sumOf(scored, ({ applied }) => applied[name][of]);
    const mse = sum('squares') / truth.count;
    return [
      name,
      {
        ...{ mse, rmse: Math.sqrt(mse) },
        ...{ bias: sum('errors') / truth.count, mae: sum('sizes') / truth.count },
        r2: rSquared(sum('squares'), truth.squares),
      },
    ];
  });
  return Object.fromEntries(measures) as Record<keyof ErrorSums, Measures>;
}
