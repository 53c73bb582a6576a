/** Measures of accuracy, and how the models of places do beside another model on the same patches. */
import type { ModelMetrics, TrainResults } from '../../training/index.js';

/** Scores by place, whose names are geocodes, with the collection before them if there are several. */
export type Scores = Map<string, ModelMetrics>;

/** The places that were trained on, whether each has a model of its own or shares one. */
export function trainedPlaces({ models }: Pick<TrainResults, 'models'>) {
  const places = models.flatMap(({ collection, distributed, geocode, metrics, patches }) =>
    (distributed?.places ?? [{ geocode, metrics, patches }]).map((place) => ({ collection, ...place })),
  );
  const isOne = new Set(places.map(({ collection }) => collection)).size <= 1;
  return places.map(({ collection, geocode, metrics, patches }) => ({
    ...{ name: isOne ? geocode : `${collection} ${geocode}`, metrics, patches },
  }));
}

export const scoresOf = (results: Pick<TrainResults, 'models'>): Scores =>
  new Map(trainedPlaces(results).map(({ name, metrics }) => [name, metrics]));

interface MeasureOf {
  /** Undefined where a place lacks it, or an older version measured it. */
  of(metrics: Pick<ModelMetrics, 'validation' | 'tile'>): number | undefined;
  /** Less is better. */
  isError: boolean;
}

/** Of validation patches, but MS-SSIM, whose five scales need whole tiles. PSNR is in dB. */
export const MEASURES = {
  MSE: { of: ({ validation }) => validation.mse, isError: true },
  R2: { of: ({ validation }) => validation.r2, isError: false },
  'MS-SSIM': { of: ({ tile }) => tile?.msSsim?.value, isError: false },
  PSNR: { of: ({ validation }) => validation.images && validation.psnr, isError: false },
  SSIM: { of: ({ validation }) => validation.images && validation.ssim, isError: false },
} as const satisfies Record<string, MeasureOf>;
export type Measure = keyof typeof MEASURES;

/** Those that Table 4 of the paper has for the model, the first of which decides at how many places it is better. */
export const MEASURES_OF: Record<string, [Measure, ...Measure[]]> = {
  ndvi: ['MSE', 'R2'],
  ndmi: ['MSE', 'R2', 'MS-SSIM'],
  'cloud-removal': ['MSE', 'PSNR', 'SSIM', 'MS-SSIM'],
};

/** Undefined also for a value that is not a number, which JSON has as null. */
export const measureOf = (measure: Measure, metrics: Pick<ModelMetrics, 'validation' | 'tile'>) =>
  (MEASURES[measure] as MeasureOf).of(metrics) ?? undefined;

/** At how many of the places that both have ours is better. Places without the measure are left out. */
export function wins(ours: Scores, theirs: Scores, measure: Measure): { won: number; of: number } {
  const { isError } = MEASURES[measure];
  const gains = [...ours].flatMap(([place, metrics]) => {
    const other = theirs.get(place);
    const [own, their] = [measureOf(measure, metrics), other && measureOf(measure, other)];
    return own === undefined || their === undefined ? [] : [isError ? their - own : own - their];
  });
  return { won: gains.filter((gain) => gain > 0).length, of: gains.length };
}

/** The mean over places; NaN if none has the measure. */
export function meanOf(scores: Scores, measure: Measure): number {
  const values = [...scores.values()].flatMap((metrics) => measureOf(measure, metrics) ?? []);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
