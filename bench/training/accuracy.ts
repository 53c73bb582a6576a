/** How the models of places do beside one model for all of them, on the same patches. */
import type { Metrics, TrainResults } from '../../src/training/index.js';

/** Scores by place. */
export type Scores = Map<string, Metrics>;

export function scoresOf({ models }: TrainResults): Scores {
  type Scored = { geocode: string; metrics: { validation: Metrics } };
  const places = models.flatMap((model): Scored[] => model.distributed?.places ?? [model]);
  return new Map(places.map(({ geocode, metrics }) => [geocode, metrics.validation]));
}

/** A measure of a model at a place; PSNR and both SSIM are means over patches. */
export const MEASURES = {
  MSE: { of: ({ mse }: Metrics) => mse, isError: true },
  'MS-SSIM': { of: ({ msSsim }: Metrics) => msSsim?.value, isError: false },
  PSNR: { of: ({ psnr }: Metrics) => psnr, isError: false },
  SSIM: { of: ({ ssim }: Metrics) => ssim, isError: false },
} as const;
export type Measure = keyof typeof MEASURES;

/** Those that Table 4 of the paper has. */
export const MEASURES_OF: Record<string, Measure[]> = {
  ndvi: ['MSE'],
  ndmi: ['MSE', 'MS-SSIM'],
  'cloud-removal': ['PSNR', 'SSIM'],
};

/** At how many places of how many ours is better. Places without the measure are left out. */
export function wins(ours: Scores, theirs: Scores, measure: Measure): { won: number; of: number } {
  const { of, isError } = MEASURES[measure];
  const pairs = [...ours].flatMap(([geocode, metrics]) => {
    const [own, other] = [of(metrics), of(theirs.get(geocode)!)];
    return own === undefined || other === undefined ? [] : [isError ? other - own : own - other];
  });
  return { won: pairs.filter((gain) => gain > 0).length, of: pairs.length };
}

/** The mean over places. */
export function meanOf(scores: Scores, measure: Measure): number {
  const values = [...scores.values()].flatMap((metrics) => MEASURES[measure].of(metrics) ?? []);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
