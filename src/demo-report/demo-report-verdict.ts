/** The figures of a training in words, including bad ones. */
import { significant } from '../html/index.js';
import { plural } from '../utils/plural.js';
import type { ReportModel, ReportTraining } from './demo-report-data.js';

/** States in one to three sentences whether the models are better than the simple baselines. */
export function verdictText({ models, pooled }: ReportTraining): string {
  if (models.length === 0) return 'No model was trained, so there is nothing to compare.';
  const beatsRidge = models.filter(
    ({ metrics, baseline }) => metrics.validation.mse < baseline.linear.mse,
  ).length;
  // The condition is negated, so that a model with an error of NaN counts as worse.
  const belowMean = models.filter(
    ({ metrics, baseline }) => !(metrics.validation.mse < baseline.mean.mse),
  ).length;
  return [byPlace(beatsRidge, models.length), againstMean(belowMean), pooled && together(pooled)]
    .filter(Boolean)
    .join(' ');
}

/** Maximum number of cells that a sentence names. */
const MAX_NAMES = 12;

/** The cells in which the model is not better than both baselines. */
export function cellsBelowBaseline(models: ReportModel[]): string {
  const lost = models.filter(
    ({ metrics, baseline }) => !(metrics.validation.mse < Math.min(baseline.linear.mse, baseline.mean.mse)),
  );
  if (lost.length === 0) return 'Here it does so everywhere.';
  if (lost.length === models.length) return 'Here it does so nowhere.';
  const names = lost.slice(0, MAX_NAMES).map(({ geocode }) => geocode);
  const more = lost.length > MAX_NAMES ? ` and ${lost.length - MAX_NAMES} more` : '';
  return `Here it does not in ${names.join(', ')}${more}.`;
}

function byPlace(wins: number, places: number): string {
  const all = plural(places, 'place');
  if (wins === places) {
    return places === 1
      ? 'The model has a lower error than ridge regression in its one place.'
      : `The model has a lower error than ridge regression in all ${all}.`;
  }
  const simple = 'a linear fit to three band means is simpler and does at least as well there';
  if (wins === 0) {
    return places === 1
      ? `The model does not beat ridge regression: ${simple}.`
      : `The model beats ridge regression in none of ${all}: ${simple}.`;
  }
  return `The model has a lower error than ridge regression in ${wins} of ${all}; in ${places - wins === 1 ? 'the other one' : `the other ${places - wins}`} it does not: ${simple}.`;
}

function againstMean(losses: number): string {
  if (losses === 0) return '';
  return `In ${plural(losses, 'place')} it is no better than always answering the training mean: do not use it there.`;
}

function together({ model, linear }: NonNullable<ReportTraining['pooled']>): string {
  const change = Math.round(Math.abs(1 - model.mse / linear.mse) * 100);
  const figures = `(${significant(model.mse)} against ${significant(linear.mse)})`;
  if (!Number.isFinite(change)) return '';
  if (change === 0) return `Over all patches together the two errors are about equal ${figures}.`;
  return `Over all patches together its error is ${change} % ${model.mse < linear.mse ? 'lower' : 'higher'} than that of ridge ${figures}.`;
}
