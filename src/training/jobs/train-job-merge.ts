/** Merges the results of the nodes. */

import { compareText } from '../../utils/compare-text.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { pooledBaselines, pooledScore, pooledTile, type TargetStatistics } from '../evaluation/index.js';
import type { LeftOut } from '../freshness/index.js';
import type { StoredModel, TrainingMode } from '../registry/index.js';
import type { PooledScores, TrainResults } from './train-job-results.js';

/** Results for the cells of one node. */
export interface PartialTrainResults extends Omit<TrainResults, 'pooled'> {
  /** Statistics of the true values in the validation patches, by model id. */
  spreads: Record<string, TargetStatistics>;
}

const IMAGES = {
  psnr: NUMBER,
  ssim: NUMBER,
  msSsim: objectOf({ value: NUMBER, scales: COUNT }),
  images: objectOf({ psnr: COUNT, ssim: COUNT, msSsim: COUNT }),
};
/** JSON has null instead of NaN. */
const ERROR = objectOf({ mse: { type: ['number', 'null'] } }, IMAGES);
const { images, ...MEANS } = IMAGES;
const TILE = objectOf({ images, dates: listOf(TEXT) }, MEANS);
const MODEL = objectOf({
  id: TEXT,
  geocode: TEXT,
  model: TEXT,
  metrics: objectOf({ train: ERROR, validation: ERROR }, { tile: TILE }),
  baseline: objectOf({ mean: ERROR, linear: ERROR }, { unchanged: ERROR, nearest: ERROR, median: ERROR }),
});

/** JSON Schema of a `PartialTrainResults`. */
export const TRAIN_PART = objectOf(
  {
    engine: TEXT,
    mode: TEXT,
    models: listOf(MODEL),
    skipped: listOf(objectOf({ geocode: TEXT, model: TEXT, reason: TEXT })),
    failed: listOf(objectOf({ geocode: TEXT, model: TEXT, code: TEXT, message: TEXT })),
    spreads: {
      type: 'object',
      additionalProperties: objectOf({ count: COUNT, mean: NUMBER, squares: NUMBER }),
    },
  },
  {
    bytesFetched: COUNT,
    base: MODEL,
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

export function addModel({ models, spreads }: PartialTrainResults, { model, spread }: StoredModel): void {
  models.push(model);
  spreads[model.id] = spread;
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

type Keys = Record<'geocode' | 'model', string>;

function byCell(a: Keys, b: Keys): number {
  return compareText(a.geocode, b.geocode) || compareText(a.model, b.model);
}
