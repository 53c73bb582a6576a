import type { Sky } from './clouds.js';
import type { Season } from './dates.js';
import { KINDS, type Kind } from './kinds.js';
import type { Landscape } from './landscape.js';
import { gaussian } from './random.js';

const NIR = 4;

/**
 * Reflectance of the land in a season in one band (0-6, see `Spectrum`), 0-1, one value a pixel: ground and leaves mixed by the green
 * fraction, times the shade.
 */
export function groundReflectance(landscape: Landscape, season: Season, band: number): Float32Array {
  const kinds: readonly Kind[] = KINDS;
  const ground = kinds.map((kind) => kind.ground[band]);
  const leaf = kinds.map((kind) => kind.leaf[band]);
  const out = new Float32Array(landscape.kind.length);
  for (let i = 0; i < out.length; i++) {
    const kind = landscape.kind[i];
    const fraction = Math.min(0.98, season.green[i]);
    const leaves = band === NIR ? leaf[kind] * landscape.nir[i] : leaf[kind];
    out[i] = ((1 - fraction) * ground[kind] * season.ground[i] + fraction * leaves) * landscape.shade[i];
  }
  return out;
}

/**
 * Applies the sky to the reflectance of the ground, in place: shadow darkens, cloud covers with its own brightness, and the
 * detector adds noise of 0.0008 + 1 % of the signal (standard deviation).
 */
export function observe(reflectance: Float32Array, sky: Sky, width: number, noiseSeed: number): Float32Array {
  for (let i = 0; i < reflectance.length; i++) {
    const cloud = sky.cloud[i];
    const seen = reflectance[i] * (1 - sky.shadow[i]) * (1 - cloud) + cloud * (0.38 + 0.34 * cloud);
    const column = i % width;
    reflectance[i] = seen + (0.0008 + 0.01 * seen) * gaussian(column, (i - column) / width, noiseSeed);
  }
  return reflectance;
}
