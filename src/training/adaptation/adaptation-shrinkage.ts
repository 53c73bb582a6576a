/**
 * How much of its fine-tuning each cell keeps. The update of a cell consists of what is true of its ground and of noise, which comes from
 * the few patches and dates that it was fitted to. Two updates from separate halves of the training patches have only the former in
 * common, so their agreement measures it: the reliability of a test in two halves (Spearman 1910, Brown 1910). The mean squared error is
 * lowest if an update is multiplied by its reliability.
 */
import { firstIndex } from '../../utils/bisection.js';
import type { ModelSpec } from '../models/index.js';

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
function reliability(patches: number, n0: number): number {
  return n0 === 0 ? 1 : patches / (patches + n0);
}

/**
 * The halves of a cell share its training ground and cannot show how other ground differs from it. So n0 is at least this fraction of the
 * largest number of patches of a cell (`maxPatches`), which keeps cells with little data near the base.
 */
const MIN_SHRINKAGE_FRACTION = 1 / 3;

/** The part of an update from `patches` patches that a cell keeps, 0 to 1; 0 keeps the base model. */
export function updateFactor(
  { maxPatches }: Pick<ModelSpec, 'maxPatches'>,
  patches: number,
  n0: number,
): number {
  return reliability(patches, Math.max(n0, MIN_SHRINKAGE_FRACTION * maxPatches));
}
