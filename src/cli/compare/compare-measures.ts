/** Accuracy measures of the cells that a run has trained. */
import type { ModelMetrics, TrainResults } from '../../training/index.js';

/** Scores by the key of the cell, which is its collection and geocode. */
type CellScores = Map<string, ModelMetrics>;

/** The trained cells, whether each has its own model or all share one. */
export function trainedCells({ models }: Pick<TrainResults, 'models'>) {
  return models.flatMap(({ collection, distributed, geocode, metrics, patches }) =>
    (distributed?.places ?? [{ geocode, metrics, patches }]).map((place) => ({
      key: `${collection} ${place.geocode}`,
      metrics: place.metrics,
      patches: place.patches,
    })),
  );
}

export const cellScores = (results: Pick<TrainResults, 'models'>): CellScores =>
  new Map(trainedCells(results).map(({ key, metrics }) => [key, metrics]));

interface MeasureOf {
  /** Undefined if a cell lacks the measure, or if an older version computed it differently. */
  of(metrics: Pick<ModelMetrics, 'validation' | 'tile'>): number | undefined;
  /** True if lower values are better. */
  isError: boolean;
}

/** Measures on the validation patches. MS-SSIM is measured on whole tiles, because its five scales need 176 pixels. PSNR is in dB. */
export const MEASURES = {
  MSE: { of: ({ validation }) => validation.mse, isError: true },
  R2: { of: ({ validation }) => validation.r2, isError: false },
  'MS-SSIM': { of: ({ tile }) => tile?.msSsim?.value, isError: false },
  PSNR: { of: ({ validation }) => validation.images && validation.psnr, isError: false },
  SSIM: { of: ({ validation }) => validation.images && validation.ssim, isError: false },
} as const satisfies Record<string, MeasureOf>;
export type Measure = keyof typeof MEASURES;

/** The measures of each model: those of the paper's Table 4, and MSE and R2. The first one decides which mode is better for a cell. */
export const MEASURES_OF: Record<string, [Measure, ...Measure[]]> = {
  ndvi: ['MSE', 'R2'],
  ndmi: ['MSE', 'R2', 'MS-SSIM'],
  'cloud-removal': ['MSE', 'PSNR', 'SSIM', 'MS-SSIM'],
};

/** Returns undefined for NaN too, which is null in JSON. */
export const measureValue = (measure: Measure, metrics: Pick<ModelMetrics, 'validation' | 'tile'>) =>
  (MEASURES[measure] as MeasureOf).of(metrics) ?? undefined;

/** The score of all patches as one set, or of all tiles for MS-SSIM. Undefined if the run has none. */
export const pooledMeasure = ({ pooled }: TrainResults, measure: Measure) =>
  pooled ? measureValue(measure, { validation: pooled.model, tile: pooled.tile }) : undefined;

/** Counts the cells in which `ours` is better, and the cells in which both have this measure. */
export function wins(ours: CellScores, theirs: CellScores, measure: Measure): { won: number; of: number } {
  const { isError } = MEASURES[measure];
  const gains = [...ours].flatMap(([place, metrics]) => {
    const other = theirs.get(place);
    const [own, their] = [measureValue(measure, metrics), other && measureValue(measure, other)];
    return own === undefined || their === undefined ? [] : [isError ? their - own : own - their];
  });
  return { won: gains.filter((gain) => gain > 0).length, of: gains.length };
}

/** The mean over cells; undefined if none has the measure. */
export function meanMeasure(scores: CellScores, measure: Measure): number | undefined {
  const values = [...scores.values()].flatMap((metrics) => measureValue(measure, metrics) ?? []);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Number.isFinite(mean) ? mean : undefined;
}
