/** Results of a training job, merged from those of its nodes, and a summary of the cells without a model. */

import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';
import { compareText, plural, reasonKey } from '../utils/text.js';
import {
  type Baselines,
  type Metrics,
  pooledBaselines,
  pooledScore,
  pooledTile,
  type TargetStatistics,
  type TileScore,
} from './evaluation.js';
import type { LeftOut } from './freshness/judgement.js';
import type { TrainingMode } from './model-card.js';
import type { ModelResult, StoredModel } from './model-store.js';
import { type QuestionScore, questionScores } from './questions.js';
import { QUESTIONS, type QuestionErrors } from './report.js';

export interface TrainResults {
  /** Name of the engine. */
  engine: string;
  mode: TrainingMode;
  models: ModelResult[];
  /** Cells without a model, because their data are too few or unsuitable. */
  skipped: { geocode: string; model: string; reason: string }[];
  /** Cells whose data could not be read, or whose training failed. */
  failed: { geocode: string; model: string; code: string; message: string }[];
  /**
   * Scores over all validation patches, and over all entire tiles. Null without models, and if the models are of several kinds, whose
   * errors have no common unit.
   */
  pooled: PooledScores | null;
  /** The scores for each question that models are asked, if their places have a history. */
  questions?: QuestionScore[];
  /** The base model of the regional mode, if the job trained it. */
  base?: ModelResult;
  /** Number of places on which the base model of the regional mode was trained. */
  basePlaces?: number;
  /** For `stale`: numbers of places by the state of their models, and the places that were not trained again. */
  checked?: { fresh: number; drifted: number; unknown: number };
  leftOut?: LeftOut[];
  /** For `stale`: estimated sum of the durations of the trainings of the chosen places, the part of the budget that is used. */
  estimatedSeconds?: number;
  /** For `stale`: the first date of the changes of the trained places, RFC 3339. */
  since?: string;
  /** Bytes of tiles that were fetched from other nodes. Absent if none were. */
  bytesFetched?: number;
}

/** Members that are missing for some cells are absent. */
interface PooledScores extends Baselines {
  model: Metrics;
  tile?: TileScore;
}

const MAX_LISTED_REASONS = 3;

/** Label of a cell for people: with the model if there are several. */
export function cellLabel(cell: string, model: string, models: string[]): string {
  return models.length > 1 ? `${cell} (${model})` : cell;
}

/**
 * Summarises the cells without a model by reason, the most frequent first: "12 places (such as u26xe): 9 usable patches, at least 40 are
 * needed". Reasons that differ only in their numbers are one reason, and so are failures of one code. With several `models`, each has its
 * own reasons: "u26xe (ndmi): no date holds swir16". `verb` says what the cells did for the reason.
 */
export function summariseReasons(
  { skipped, failed }: Pick<TrainResults, 'skipped' | 'failed'>,
  models: string[],
  verb?: string,
): string[] {
  const reasons = new Map<string, { reason: string; cell: string; count: number }>();
  const add = ({ geocode, model }: { geocode: string; model: string }, kind: string, reason: string) => {
    const key = `${model} ${kind}`;
    const known = reasons.get(key);
    if (known) known.count++;
    else reasons.set(key, { reason, cell: cellLabel(geocode, model, models), count: 1 });
  };
  for (const one of failed) add(one, one.code, `${one.message} [${one.code}]`);
  for (const one of skipped) add(one, reasonKey(one.reason), one.reason);
  const all = [...reasons.values()].sort((a, b) => b.count - a.count);
  const named = all.slice(0, MAX_LISTED_REASONS).map(({ reason, cell, count }) => {
    const cells = count === 1 ? cell : `${count} places (such as ${cell})`;
    return `${verb ? `${cells} ${verb}` : cells}: ${reason}`;
  });
  const others = all.slice(MAX_LISTED_REASONS).reduce((sum, { count }) => sum + count, 0);
  const one = models.length > 1 ? 'model' : 'place';
  return others > 0 ? [...named, plural(others, `other ${one}`)] : named;
}

/** Results for the cells of one node. */
export interface PartialTrainResults extends Omit<TrainResults, 'pooled' | 'questions'> {
  /** Statistics of the true values in the validation patches, by model id. */
  spreads: Record<string, TargetStatistics>;
  /** Errors by question of each place, by its model, if the place has a history. */
  asked?: Record<string, QuestionErrors[]>;
}

const IMAGE_SCORES = {
  psnr: NUMBER,
  ssim: NUMBER,
  msSsim: objectOf({ value: NUMBER, scales: COUNT }),
  images: objectOf({ psnr: COUNT, ssim: COUNT, msSsim: COUNT }),
};
/** JSON has null instead of NaN. */
const ERROR_SCORES = objectOf({ mse: { type: ['number', 'null'] } }, IMAGE_SCORES);
const { images, ...TILE_MEANS } = IMAGE_SCORES;
const TILE_SCORES = objectOf({ images, dates: listOf(TEXT) }, TILE_MEANS);
const MODEL_RESULT = objectOf({
  id: TEXT,
  geocode: TEXT,
  model: TEXT,
  metrics: objectOf({ train: ERROR_SCORES, validation: ERROR_SCORES }, { tile: TILE_SCORES }),
  baseline: objectOf(
    { mean: ERROR_SCORES, linear: ERROR_SCORES },
    { unchanged: ERROR_SCORES, nearest: ERROR_SCORES, median: ERROR_SCORES },
  ),
});

/** JSON Schema of `QuestionErrors`. */
export const QUESTION_ERRORS = objectOf({
  question: { enum: QUESTIONS },
  ...{ datetime: TEXT, values: COUNT },
  ...{ model: NUMBER, mean: NUMBER, history: NUMBER, nearest: NUMBER, linear: NUMBER },
});

/** JSON Schema of a `PartialTrainResults`. */
export const TRAIN_PART = objectOf(
  {
    engine: TEXT,
    mode: TEXT,
    models: listOf(MODEL_RESULT),
    skipped: listOf(objectOf({ geocode: TEXT, model: TEXT, reason: TEXT })),
    failed: listOf(objectOf({ geocode: TEXT, model: TEXT, code: TEXT, message: TEXT })),
    spreads: {
      type: 'object',
      additionalProperties: objectOf({ count: COUNT, mean: NUMBER, squares: NUMBER }),
    },
  },
  {
    bytesFetched: COUNT,
    asked: {
      type: 'object',
      additionalProperties: listOf(QUESTION_ERRORS),
    },
    base: MODEL_RESULT,
    basePlaces: COUNT,
    checked: objectOf({ fresh: COUNT, drifted: COUNT, unknown: COUNT }),
    leftOut: listOf(
      objectOf(
        { collection: TEXT, geocode: TEXT, reason: TEXT },
        { drifted: { const: true }, seconds: NUMBER, budget: NUMBER },
      ),
    ),
    estimatedSeconds: NUMBER,
    since: TEXT,
  },
);

export function emptyResults(engine: string, mode: TrainingMode): PartialTrainResults {
  return { engine, mode, models: [], skipped: [], failed: [], spreads: {} };
}

export function addModel(results: PartialTrainResults, { model, spread, asked }: StoredModel): void {
  results.models.push(model);
  results.spreads[model.id] = spread;
  if (Object.keys(asked).length > 0) results.asked = { ...results.asked, ...asked };
}

export function mergeResults(parts: PartialTrainResults[]): TrainResults {
  const spreads: PartialTrainResults['spreads'] = Object.assign({}, ...parts.map((part) => part.spreads));
  const models = parts.flatMap((part) => part.models).sort(byCell);
  const fetched = parts.reduce((sum, { bytesFetched = 0 }) => sum + bytesFetched, 0);
  return {
    engine: [...new Set(parts.map(({ engine }) => engine))].sort().join(', '),
    mode: parts[0]?.mode ?? 'partitioned',
    models,
    ...baseOf(parts),
    ...questionsOf(parts),
    skipped: parts.flatMap(({ skipped }) => skipped).sort(byCell),
    failed: parts.flatMap(({ failed }) => failed).sort(byCell),
    pooled: new Set(models.map(({ model }) => model)).size === 1 ? pooledScores(models, spreads) : null,
    ...mergeStale(parts),
    ...(fetched > 0 && { bytesFetched: fetched }),
  };
}

function pooledScores(models: TrainResults['models'], spreads: PartialTrainResults['spreads']): PooledScores {
  const truths = models.map(({ id }) => spreads[id]);
  const tile = pooledTile(models);
  const validation = models.map(({ metrics }) => metrics.validation);
  return {
    model: pooledScore(truths, validation),
    ...pooledBaselines(truths, models),
    ...(tile && { tile }),
  };
}

/** Maximum number of places that were left out in the results. */
const MAX_LEFT_OUT = 1000;

function mergeStale(
  parts: PartialTrainResults[],
): Pick<TrainResults, 'checked' | 'leftOut' | 'estimatedSeconds' | 'since'> {
  const counts = parts.flatMap(({ checked }) => checked ?? []);
  if (counts.length === 0) return {};
  const sum = (of: keyof (typeof counts)[number]) => counts.reduce((total, one) => total + one[of], 0);
  const leftOut = parts.flatMap((part) => part.leftOut ?? []);
  const since = parts.find((part) => part.since !== undefined)?.since;
  return {
    checked: { fresh: sum('fresh'), drifted: sum('drifted'), unknown: sum('unknown') },
    leftOut: leftOut.sort(byBudget).slice(0, MAX_LEFT_OUT),
    // All nodes choose the same places.
    estimatedSeconds: parts.find((part) => part.estimatedSeconds !== undefined)?.estimatedSeconds ?? 0,
    ...(since !== undefined && { since }),
  };
}

type Excluded = Pick<LeftOut, 'geocode' | 'budget'>;

/** The order in which a larger budget includes places; then the others. */
const byBudget = (a: Excluded, b: Excluded): number => {
  const [one, other] = [a.budget ?? Number.MAX_VALUE, b.budget ?? Number.MAX_VALUE];
  return one - other || compareText(a.geocode, b.geocode);
};

function baseOf(parts: PartialTrainResults[]): Pick<TrainResults, 'base' | 'basePlaces'> {
  const base = parts.find((part) => part.base)?.base;
  const basePlaces = parts.find((part) => part.basePlaces !== undefined)?.basePlaces;
  return { ...(base && { base }), ...(basePlaces !== undefined && { basePlaces }) };
}

function questionsOf(parts: PartialTrainResults[]): Pick<TrainResults, 'questions'> {
  const asked: Record<string, QuestionErrors[]> = Object.assign({}, ...parts.map((part) => part.asked));
  return Object.keys(asked).length > 0 ? { questions: questionScores(asked) } : {};
}

type Keys = Record<'geocode' | 'model', string>;

function byCell(a: Keys, b: Keys): number {
  return compareText(a.geocode, b.geocode) || compareText(a.model, b.model);
}
