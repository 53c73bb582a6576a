/** Weights between those of a base model and of its fine-tuning (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models"). */
import type { WeightValues } from '../models/index.js';

/** `factor` 0 gives the weights of the base, and 1 those of the fine-tuning, bit for bit. */
export function interpolateWeights(
  base: WeightValues[],
  tuned: WeightValues[],
  factor: number,
): WeightValues[] {
  if (factor === 0) return base;
  if (factor === 1) return tuned;
  return base.map(({ shape, values }, i) => ({
    shape,
    values: values.map((value, k) => value + factor * (tuned[i].values[k] - value)),
  }));
}
