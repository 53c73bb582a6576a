/** Puts together what was trained of some of the places each. */
import { pooledScore, type Spread } from './metrics.js';
import type { TrainResults } from './results.js';

/** What was trained of some of the places. */
export interface TrainPart extends Omit<TrainResults, 'pooled'> {
  /** Of the validation patches, by model. */
  spreads: Record<string, Spread>;
}

export function mergeResults(parts: TrainPart[]): TrainResults {
  const byGeocode = (a: { geocode: string }, b: { geocode: string }) =>
    a.geocode < b.geocode ? -1 : a.geocode > b.geocode ? 1 : 0;
  const spreads: TrainPart['spreads'] = Object.assign({}, ...parts.map((part) => part.spreads));
  const models = parts.flatMap((part) => part.models).sort(byGeocode);
  const truths = models.map(({ id }) => spreads[id]);
  const pooled = (mse: (model: TrainResults['models'][number]) => number) =>
    pooledScore(truths, models.map(mse));
  const fetched = parts.reduce((sum, { bytesFetched = 0 }) => sum + bytesFetched, 0);
  return {
    engine: [...new Set(parts.map(({ engine }) => engine))].sort().join(', '),
    mode: parts[0]?.mode ?? 'partitioned',
    models,
    skipped: parts.flatMap(({ skipped }) => skipped).sort(byGeocode),
    failed: parts.flatMap(({ failed }) => failed).sort(byGeocode),
    pooled:
      models.length === 0
        ? null
        : {
            model: pooled(({ metrics }) => metrics.validation.mse),
            linear: pooled(({ baseline }) => baseline.linear.mse),
            mean: pooled(({ baseline }) => baseline.mean.mse),
          },
    ...(fetched > 0 && { bytesFetched: fetched }),
    seconds: Math.max(0, ...parts.map(({ seconds }) => seconds)),
  };
}
