/** Puts together what was trained of some of the places each. */
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../json-schema.js';
import { pooledScore, type Spread } from './metrics.js';
import type { TrainResults } from './results.js';

/** What was trained of some of the places. */
export interface TrainPart extends Omit<TrainResults, 'pooled'> {
  /** Of the validation patches, by model. */
  spreads: Record<string, Spread>;
}

/** JSON has no NaN. */
const ERROR = objectOf({ mse: { type: ['number', 'null'] } });
const MODEL = objectOf({
  id: TEXT,
  geocode: TEXT,
  model: TEXT,
  metrics: objectOf({ train: ERROR, validation: ERROR }),
  baseline: objectOf({ mean: ERROR, linear: ERROR }),
});

/** JSON Schema of a `TrainPart`. */
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
  { bytesFetched: COUNT },
);

export function mergeResults(parts: TrainPart[]): TrainResults {
  const spreads: TrainPart['spreads'] = Object.assign({}, ...parts.map((part) => part.spreads));
  const models = parts.flatMap((part) => part.models).sort(byPlace);
  const truths = models.map(({ id }) => spreads[id]);
  const pooled = (mse: (model: TrainResults['models'][number]) => number) =>
    pooledScore(truths, models.map(mse));
  const fetched = parts.reduce((sum, { bytesFetched = 0 }) => sum + bytesFetched, 0);
  return {
    engine: [...new Set(parts.map(({ engine }) => engine))].sort().join(', '),
    mode: parts[0]?.mode ?? 'partitioned',
    models,
    skipped: parts.flatMap(({ skipped }) => skipped).sort(byPlace),
    failed: parts.flatMap(({ failed }) => failed).sort(byPlace),
    pooled:
      new Set(models.map(({ model }) => model)).size !== 1
        ? null
        : {
            model: pooled(({ metrics }) => metrics.validation.mse),
            linear: pooled(({ baseline }) => baseline.linear.mse),
            mean: pooled(({ baseline }) => baseline.mean.mse),
          },
    ...(fetched > 0 && { bytesFetched: fetched }),
  };
}

interface Placed {
  geocode: string;
  model: string;
}

function byPlace(a: Placed, b: Placed): number {
  return compare(a.geocode, b.geocode) || compare(a.model, b.model);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
