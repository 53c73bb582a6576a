import { fractalNoise, quantile, smoothstep, type View } from './noise.js';

/** One value a pixel, 0-1. */
export interface Sky {
  /** Opacity of the clouds; soft at their edges. */
  cloud: Float32Array;
  /** Loss of light in the shadow of the clouds. */
  shadow: Float32Array;
}

/** Opacity from which a pixel is called cloud. */
export const CLOUD_OPACITY = 0.25;

/** Offset of a cloud's shadow, metres. South is positive: a morning shadow falls to the north-west. */
const SHADOW_OFFSET = { x: -420, y: -300 };

/**
 * A field of clouds over `share` (0-1) of a view. `seed` is the weather of a date; the clouds of two dates have nothing
 * in common.
 */
export function makeSky(view: View, share: number, seed: number): Sky {
  const cloud = opacity(view, view, share, seed);
  const overShadow = { ...view, x: view.x - SHADOW_OFFSET.x, y: view.y - SHADOW_OFFSET.y };
  const shadow = opacity(overShadow, view, share, seed);
  for (let i = 0; i < shadow.length; i++) shadow[i] = 0.4 * shadow[i] * (1 - cloud[i]);
  return { cloud, shadow };
}

/** Opacity over one view, with the threshold that gives `share` over another: a shadow is that of the same cloud. */
function opacity(view: View, reference: View, share: number, seed: number): Float32Array {
  const field = fractalNoise(view, 2600, 6, seed);
  if (share <= 0) return field.fill(0);
  const threshold = quantile(view === reference ? field : fractalNoise(reference, 2600, 6, seed), 1 - share);
  for (let i = 0; i < field.length; i++) {
    field[i] = 0.95 * smoothstep(threshold - 0.025, threshold + 0.06, field[i]);
  }
  return field;
}
