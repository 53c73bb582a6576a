/** The error on the validation patches after each epoch. */
import type { TrainingMode, TrainResults } from '../../training/index.js';
import type { Comparison } from './compare-data.js';
import { runsOfMode } from './compare-summary.js';

interface LossCurve {
  mode: TrainingMode;
  seed: number;
  /** Mean squared error on the validation patches of all cells after each epoch. */
  validation: number[];
}

export function lossCurves(comparison: Comparison): LossCurve[] {
  return comparison.modes.flatMap((mode) =>
    runsOfMode(comparison, mode).map(({ seed, results }) => ({ mode, seed, validation: lossesOf(results) })),
  );
}

/**
 * The mean over all validation values, as in the pooled scores. A cell that stopped early counts with its last epoch. Empty if the results
 * have no losses, as those of stored models, which have them in their cards.
 */
function lossesOf({ models }: TrainResults): number[] {
  const known = models.flatMap(({ losses, validationValues }) =>
    losses && validationValues ? [{ losses, validationValues }] : [],
  );
  if (known.length < models.length) return [];
  const epochs = Math.max(0, ...known.map(({ losses }) => losses.length));
  const all = known.reduce((sum, { validationValues }) => sum + validationValues, 0);
  return Array.from({ length: epochs }, (_, i) =>
    known.reduce((sum, { losses, validationValues }) => {
      const { validation } = losses[Math.min(i, losses.length - 1)]!;
      return sum + (validationValues / all) * validation;
    }, 0),
  );
}
