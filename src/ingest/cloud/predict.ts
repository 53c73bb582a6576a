/** Runs a LightGBM model over many rows. */
import { badCloudBands } from '../errors.js';
import { type LightgbmModel, MISSING_LEFT, NODE, ZERO_IS_MISSING } from './lightgbm.js';

/** Rows that all trees see before the next rows: these and one tree fit into the nearest cache. */
const BLOCK = 256;
/** LightGBM's kZeroThreshold. */
const ZERO = Math.fround(1e-35);

/**
 * Probability of class 1, 0-1, of each row. `rows` holds `model.features` values a row; NaN is a missing value. Rows are walked
 * four at a time through one tree after the other: a walk waits for its next node, and others can go on meanwhile.
 */
export function predict(model: LightgbmModel, rows: Float32Array, out: Float32Array): void {
  const { features, roots, leaves } = model;
  if (rows.length !== out.length * features) {
    throw badCloudBands('the rows', rows.length, out.length * features);
  }
  const firstLeaf = model.missing.length;
  const zeroIsMissing = model.missing.some((flags) => flags & ZERO_IS_MISSING);
  const ends = new Int32Array(BLOCK);
  const sums = new Float64Array(BLOCK);
  // The rows of the last block are padded, so that there are always four.
  const block = new Float32Array(BLOCK * features);
  for (let start = 0; start < out.length; start += BLOCK) {
    const count = Math.min(BLOCK, out.length - start);
    block.set(rows.subarray(start * features, (start + count) * features));
    const walk = zeroIsMissing || block.some(Number.isNaN) ? walkWithMissing : walkFour;
    sums.fill(0);
    for (const root of roots) {
      walk(model, root, block, count, ends);
      for (let i = 0; i < count; i++) sums[i] += leaves[ends[i] / NODE - firstLeaf];
    }
    for (let i = 0; i < count; i++) out[start + i] = 1 / (1 + Math.exp(-sums[i]));
  }
}

/** Puts the first word of each row's leaf into `ends`. No row may hold a missing value. */
function walkFour(
  { words, floats, features, missing }: LightgbmModel,
  root: number,
  rows: Float32Array,
  count: number,
  ends: Int32Array,
): void {
  const firstLeaf = missing.length * NODE;
  for (let i = 0; i < count; i += 4) {
    const r0 = i * features;
    const r1 = r0 + features;
    const r2 = r1 + features;
    const r3 = r2 + features;
    let a = root;
    let b = root;
    let c = root;
    let d = root;
    // A leaf leads to itself.
    while (a < firstLeaf || b < firstLeaf || c < firstLeaf || d < firstLeaf) {
      a = words[a + 2 + +(rows[r0 + words[a]] > floats[a + 1])];
      b = words[b + 2 + +(rows[r1 + words[b]] > floats[b + 1])];
      c = words[c + 2 + +(rows[r2 + words[c]] > floats[c + 1])];
      d = words[d + 2 + +(rows[r3 + words[d]] > floats[d + 1])];
    }
    ends[i] = a;
    ends[i + 1] = b;
    ends[i + 2] = c;
    ends[i + 3] = d;
  }
}

/** As `walkFour`, with missing values. */
function walkWithMissing(
  { words, floats, features, missing }: LightgbmModel,
  root: number,
  rows: Float32Array,
  count: number,
  ends: Int32Array,
): void {
  const firstLeaf = missing.length * NODE;
  for (let i = 0; i < count; i++) {
    let at = root;
    while (at < firstLeaf) {
      const value = rows[i * features + words[at]];
      const flags = missing[at / NODE];
      const isMissing = Number.isNaN(value) || (flags & ZERO_IS_MISSING && Math.abs(value) <= ZERO);
      const left = isMissing ? flags & MISSING_LEFT : value <= floats[at + 1];
      at = words[at + (left ? 2 : 3)];
    }
    ends[i] = at;
  }
}
