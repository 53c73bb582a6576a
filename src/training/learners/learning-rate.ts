/** Schedule of the learning rate. */
import type { ModelSpec } from '../models/index.js';

/**
 * Fraction of the steps used for learning-rate warm-up when fine-tuning, counted separately for each phase of a schedule. A full learning
 * rate from the first step would destroy the pretrained weights.
 */
export const WARMUP_FRACTION = 1 / 2;

/** Learning rate of a step (from 0) out of `steps`: it falls to zero along half a cosine. */
export function cosineLearningRate({ learningRate }: ModelSpec, step: number, steps: number): number {
  return 0.5 * learningRate * (1 + Math.cos((Math.PI * step) / steps));
}
