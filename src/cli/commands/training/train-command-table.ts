/** The table of trained models. */
import type { TrainResults } from '../../../training/index.js';
import { plural } from '../../../utils/plural.js';
import { formatMse, imageMeasures, table } from '../../output/index.js';

type Trained = TrainResults['models'][number];
type Scored = Pick<Trained, 'baseline' | 'parent' | 'adaptation'> & {
  metrics: Omit<Trained['metrics'], 'train'>;
  model?: string;
};

/** Marks models that are worse on their validation patches than the training mean. */
const WORSE_MARK = ' *';

/**
 * Returns no lines if there is no model. Below a model of several places, each place has a row. If there are several models, the last row
 * has their pooled scores, if known.
 */
export function trainingTable(
  models: readonly Trained[],
  namesModels: boolean,
  pooled: TrainResults['pooled'],
): string[] {
  const isOfSeveral = new Set(models.map(({ collection }) => collection)).size > 1;
  const row = (place: string, scored: Scored, more: { collection?: string; took?: number } = {}) => {
    const { model, metrics, baseline, parent, adaptation } = scored;
    const { validation, tile } = metrics;
    return {
      ...(isOfSeveral && { collection: more.collection ?? '' }),
      place,
      ...(namesModels && { model }),
      ...(parent !== undefined && !adaptation && { from: parent.slice(parent.lastIndexOf('_') + 2) }),
      MSE: formatMse(validation.mse) + (validation.mse > baseline.mean.mse ? WORSE_MARK : ''),
      R2: validation.r2.toFixed(3),
      ...imageMeasures(validation),
      ...(tile?.msSsim && { 'tile MS-SSIM': imageMeasures(tile)['MS-SSIM'] }),
      ...(adaptation && { 'MSE base': formatMse(adaptation.errors.base.mse) }),
      ...(adaptation?.errors.fresh && { 'MSE fresh': formatMse(adaptation.errors.fresh.mse) }),
      'MSE linear': formatMse(baseline.linear.mse),
      'MSE mean': formatMse(baseline.mean.mse),
      ...(baseline.unchanged && { 'MSE cloudy': formatMse(baseline.unchanged.mse) }),
      ...(baseline.nearest && { 'MSE nearest': formatMse(baseline.nearest.mse) }),
      ...(baseline.median && { 'MSE median': formatMse(baseline.median.mse) }),
      ...(more.took !== undefined && { seconds: more.took.toFixed(1) }),
    };
  };
  const rows = models.flatMap((model) => [
    row(model.geocode, model, { collection: model.collection, took: model.seconds }),
    ...(model.distributed?.places ?? []).map((place) => row(`- ${place.geocode}`, place)),
  ]);
  if (rows.length === 0) return [];
  if (pooled && models.length > 1) {
    const { model: validation, tile, ...baseline } = pooled;
    rows.push(row('all places', { metrics: { validation, tile }, baseline }));
  }
  // The row with the most columns defines their order.
  const fullest = rows.toSorted((a, b) => Object.keys(b).length - Object.keys(a).length);
  const titles = [...new Set(fullest.flatMap(Object.keys))];
  const cells = rows.map((one) => titles.map((title) => (one as Record<string, string>)[title] ?? ''));
  const lines = table([titles, ...cells]);
  if (rows.some(({ MSE }) => MSE.endsWith(WORSE_MARK)))
    lines.push(
      `${WORSE_MARK.trim()} worse than the mean of the training; "tilewright predict" warns of such a model`,
    );
  return [...lines, ...adaptationSummary(models)];
}

/** An adapted model is named if its error is larger than that of its base times this factor. */
const WORSE_THAN_BASE = 1.1;
const MAX_NAMED = 5;

/** Compares the models that were adapted from a base with it. */
function adaptationSummary(models: readonly Trained[]): string[] {
  const compared = models.flatMap(({ geocode, metrics, adaptation }) =>
    adaptation && adaptation.errors.base.mse > 0 && metrics.validation.mse > 0
      ? [{ geocode, ratio: metrics.validation.mse / adaptation.errors.base.mse }]
      : [],
  );
  if (compared.length === 0) return [];
  const ratios = compared.map(({ ratio }) => ratio);
  const worse = compared.filter(({ ratio }) => ratio > WORSE_THAN_BASE).sort((a, b) => b.ratio - a.ratio);
  const named = worse
    .slice(0, MAX_NAMED)
    .map(({ geocode, ratio }) => `${geocode} (${ratio.toFixed(2)} times)`);
  const others = worse.length > MAX_NAMED ? ` and ${plural(worse.length - MAX_NAMED, 'other')}` : '';
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  const better = ratios.filter((ratio) => ratio < 1).length;
  return [
    `adapted models: ${mean.toFixed(2)} of the error of the base (geometric mean), better at ${better} of ${plural(ratios.length, 'place')}`,
    ...(worse.length > 0
      ? [
          `warning: worse than the base on the validation patches: ${named.join(', ')}${others}; if such a model is deleted, "tilewright predict" maps its place with the base`,
        ]
      : []),
  ];
}
