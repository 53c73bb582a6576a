/**
 * How much of its fine-tuning each cell keeps. The update of a cell consists of what is true of its ground and of noise, which comes from
 * the few patches and dates that it was fitted to. Two updates from separate halves of the training patches have only the former in
 * common, so their agreement measures it: the reliability of a test in two halves (Spearman 1910, Brown 1910). The mean squared error is
 * lowest if an update is multiplied by its reliability.
 */
import { firstIndex } from '../../utils/bisection.js';

/** Agreement of two updates of one cell. */
export interface UpdateAgreement {
  /** Training patches of the cell. */
  patches: number;
  /** Training patches of each update. */
  half: number;
  /** From -1 to 1: sum of the products of the changes of predictions, over the mean of both sums of squares. */
  agreement: number;
}

/** Resolution of the estimate: candidates for each power of ten. */
const STEPS_PER_DECADE = 1000;
const MAX_DECADES = 9;

/**
 * Estimates the number of patches n0 for which an update from n patches has the reliability n / (n + n0), from all cells together: the
 * value at which the reliabilities of the halves have the same mean as their agreements. Infinity if the updates do not agree, and 0 if
 * they are equal. `cells` has at least one element.
 */
export function estimateShrinkage(cells: UpdateAgreement[]): number {
  const agreements = cells.reduce((sum, { agreement }) => sum + agreement, 0);
  if (agreements <= 0) return Infinity;
  const reliabilities = (n0: number) => cells.reduce((sum, { half }) => sum + reliability(half, n0), 0);
  const candidate = (index: number) => (index === 0 ? 0 : 10 ** (index / STEPS_PER_DECADE - 3));
  const count = MAX_DECADES * STEPS_PER_DECADE;
  const found = firstIndex(count, (index) => reliabilities(candidate(index)) <= agreements);
  return found === count ? Infinity : candidate(found);
}

/** Reliability of an update from `patches` patches, 0 to 1. */
export function reliability(patches: number, n0: number): number {
  return n0 === 0 ? 1 : patches / (patches + n0);
}

/**
 * The halves share the training ground and its dates, and cannot show how far other ground and later dates differ. At most this part of an
 * update is kept: halfway was best or nearly best in all regions of docs/reference/benchmarks.md.
 */
const MAX_FACTOR = 0.5;

/** The part of an update from `patches` patches that a cell keeps; 0 keeps the base model. */
export function updateFactor(patches: number, n0: number): number {
  return Math.min(MAX_FACTOR, reliability(patches, n0));
}
