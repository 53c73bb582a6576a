/** Applies a LightGBM model to many rows. */
import { badCloudBands } from '../errors.js';
import { type LightgbmModel, MISSING_LEFT, ZERO_IS_MISSING } from './lightgbm-model.js';

/** LightGBM's kZeroThreshold. */
const ZERO_THRESHOLD = Math.fround(1e-35);

/**
 * Probability of class 1, 0-1, for each row. `rows` holds `model.features` values per row; NaN is a missing value. Each tree
 * processes all rows before the next tree, so that it stays in the cache.
 */
export function predictLightgbm(model: LightgbmModel, rows: Float32Array, out: Float32Array): void {
  const { features, roots, leaves } = model;
  if (rows.length !== out.length * features) {
    throw badCloudBands('the rows', rows.length, out.length * features);
  }
  const zeroIsMissing = model.missing.some((flags) => flags & ZERO_IS_MISSING);
  const holes = new Uint8Array(out.length).fill(zeroIsMissing ? 1 : 0);
  for (let k = 0; k < rows.length; k++) if (Number.isNaN(rows[k])) holes[Math.floor(k / features)] = 1;
  const sums = new Float64Array(out.length);
  for (const root of roots) {
    for (let i = 0; i < out.length; i++) {
      const row = i * features;
      const leaf = holes[i] === 0 ? leafOf(model, root, rows, row) : leafWithMissing(model, root, rows, row);
      sums[i] += leaves[leaf];
    }
  }
  for (let i = 0; i < out.length; i++) out[i] = 1 / (1 + Math.exp(-sums[i]));
}

/** The leaf of a row without missing values. */
function leafOf({ words, floats }: LightgbmModel, root: number, rows: Float32Array, row: number): number {
  let at = root;
  while (at >= 0) at = rows[row + words[at]] <= floats[at + 1] ? words[at + 2] : words[at + 3];
  return ~at;
}

function leafWithMissing(
  { words, floats, missing }: LightgbmModel,
  root: number,
  rows: Float32Array,
  row: number,
): number {
  let at = root;
  while (at >= 0) {
    const value = rows[row + words[at]];
    const flags = missing[at / 4];
    const isMissing = Number.isNaN(value) || (flags & ZERO_IS_MISSING && Math.abs(value) <= ZERO_THRESHOLD);
    const left = isMissing ? flags & MISSING_LEFT : value <= floats[at + 1];
    at = words[at + (left ? 2 : 3)];
  }
  return ~at;
}
