/**
 * The 8-bit rendering on which images are scored: values are mapped linearly from the display range of a place to 0 and 255, and clipped.
 * They are not rounded: it would change a PSNR of 30 dB by 0.01 dB, and call images the same that differ by less than a grey level.
 */
import type { Patches } from '../patches/index.js';

/** The values that are shown as 0 and as 255: reflectance, or an index from -1 to 1. */
export type DisplayRange = [low: number, high: number];

/** The largest value of the rendering. */
export const DISPLAY_PEAK = 255;

/** Share of the true values below the range, and above it. */
const CLIPPED_FRACTION = 0.02;

/**
 * The 2nd to the 98th percentile of the true values of these patches, all bands together, interpolated linearly. All models and baselines of
 * a place are scored with the range of its training patches. Undefined for patches with one value each, and if the two percentiles are equal.
 */
export function displayRange({ targets, targetBands, targetMask }: Patches): DisplayRange | undefined {
  if (!targetMask) return undefined;
  const counting = new Float32Array(targets.length);
  let length = 0;
  for (let i = 0; i < targets.length; i++)
    if (targetMask[Math.floor(i / targetBands)] === 1) counting[length++] = targets[i];
  const values = counting.subarray(0, length).sort();
  const [low, high] = [percentile(values, CLIPPED_FRACTION), percentile(values, 1 - CLIPPED_FRACTION)];
  return high > low ? [low, high] : undefined;
}

function percentile(sorted: Float32Array, share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(sorted.length - 1, below + 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/** From 0 to PEAK; NaN stays NaN. */
export function rendered(values: Float32Array, [low, high]: DisplayRange): Float32Array {
  return values.map((value) =>
    Math.min(DISPLAY_PEAK, Math.max(0, (DISPLAY_PEAK * (value - low)) / (high - low))),
  );
}
