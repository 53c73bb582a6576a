/** Measures of accuracy, and how the models of places do beside another model on the same patches. */
import type { ModelMetrics, TrainResults } from '../../training/index.js';

/** Scores by place. */
export type Scores = Map<string, ModelMetrics>;

/** The scores of each place, whether it has a model of its own or shares one. */
export function scoresOf({ models }: Pick<TrainResults, 'models'>): Scores {
  type Scored = { geocode: string; metrics: ModelMetrics };
  const places = models.flatMap((model): Scored[] => model.distributed?.places ?? [model]);
  return new Map(places.map(({ geocode, metrics }) => [geocode, metrics]));
}

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

export const measureOf = (measure: Measure, metrics: Pick<ModelMetrics, 'validation' | 'tile'>) =>
  (MEASURES[measure] as MeasureOf).of(metrics);

/** At how many of the places that both have ours is better. Places without the measure are left out. */
export function wins(ours: Scores, theirs: Scores, measure: Measure): { won: number; of: number } {
  const { isError } = MEASURES[measure];
  const gains = [...ours].flatMap(([geocode, metrics]) => {
    const other = theirs.get(geocode);
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
