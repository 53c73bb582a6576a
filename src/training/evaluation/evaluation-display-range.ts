/**
 * Rendering on which images are scored: values are mapped linearly from the display range of a cell to 0 and 255, and clipped. They are
 * not rounded: rounding would change a PSNR of 30 dB by 0.01 dB, and images that differ by less than a grey level would count as equal.
 */
import type { Patches } from '../patches/index.js';

/** Values rendered as 0 and as 255: reflectance, or an index from -1 to 1. */
export type DisplayRange = [low: number, high: number];

/** Maximum of the rendering. */
export const DISPLAY_PEAK = 255;

/** Fraction of the true values below the range, and above it. */
const CLIPPED_FRACTION = 0.02;

/**
 * Returns the 2nd and the 98th percentile of the true values of these patches, over all bands, with linear interpolation. All models and
 * baselines of a cell are scored with the range of its training patches. Undefined for patches with one value each, and if the two
 * percentiles are equal.
 */
export function displayRange({ targets, targetBands, targetMask }: Patches): DisplayRange | undefined {
  if (!targetMask) return undefined;
  const counting = new Float32Array(targets.length);
  let length = 0;
  for (let i = 0; i < targets.length; i++)
    if (targetMask[Math.floor(i / targetBands)] === 1) counting[length++] = targets[i];
  const values = counting.subarray(0, length).sort();
  const low = percentile(values, CLIPPED_FRACTION);
  const high = percentile(values, 1 - CLIPPED_FRACTION);
  return high > low ? [low, high] : undefined;
}

function percentile(sorted: Float32Array, share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(sorted.length - 1, below + 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/** Maps values to 0 to DISPLAY_PEAK. NaN stays NaN. */
export function rendered(values: Float32Array, [low, high]: DisplayRange): Float32Array {
  return values.map((value) =>
    Math.min(DISPLAY_PEAK, Math.max(0, (DISPLAY_PEAK * (value - low)) / (high - low))),
  );
}
