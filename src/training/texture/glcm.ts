/**
 * Texture from grey-level co-occurrence matrices (Haralick, Shanmugam and Dinstein, 1973; section 2.5 of the paper).
 *
 * The values are those of `graycomatrix` (symmetric, normalised, without the row and column of level 0) and `graycoprops` of
 * scikit-image.
 */
import { type AcquisitionFiles, clearMask, readAcquisitions } from '../acquisitions.js';
import { RGB_BANDS } from '../models/spec.js';

/** Luma of ITU-R BT.601, the usual conversion of colour to grey. */
const LUMA = { red: 0.299, green: 0.587, blue: 0.114 };
/** Reflectance of the level 255, which few cloud-free pixels exceed. */
const WHITE_REFLECTANCE = 0.35;
/** Level of masked pixels. */
const MASKED = 0;
const DARKEST = 1;
const BRIGHTEST = 255;

interface ColourPlanes {
  /** Reflectance, 0 to 1. */
  red: Float32Array;
  green: Float32Array;
  blue: Float32Array;
}

/**
 * Maps reflectance 0 to 0.35 to levels 1 to 255, clipped: the same scale for all tiles, so that textures are comparable. Level 0 where
 * `usable` is 0 or a value is not finite.
 */
export function greyLevels({ red, green, blue }: ColourPlanes, usable: Uint8Array): Uint8Array {
  const levels = new Uint8Array(red.length);
  const scale = (BRIGHTEST - DARKEST) / WHITE_REFLECTANCE;
  for (let i = 0; i < levels.length; i++) {
    if (usable[i] === 0) continue;
    const luma = LUMA.red * red[i] + LUMA.green * green[i] + LUMA.blue * blue[i];
    // NaN fails every comparison and stays masked.
    if (luma >= WHITE_REFLECTANCE) levels[i] = luma === Infinity ? MASKED : BRIGHTEST;
    else if (luma > -Infinity) levels[i] = DARKEST + Math.round(scale * Math.max(0, luma));
  }
  return levels;
}

/** In the order of `graycoprops` in the literature. */
const TEXTURE_PROPERTIES = [
  'contrast',
  'dissimilarity',
  'homogeneity',
  'energy',
  'correlation',
  'ASM',
] as const;
type TextureProperty = (typeof TEXTURE_PROPERTIES)[number];

/** Distance between the pixels of a pair, in pixels. */
const DISTANCES = [1, 2, 3] as const;
const ANGLES = [0, Math.PI / 4, Math.PI / 2, (3 * Math.PI) / 4];
const LEVELS = 256;

/** Names of the values of `textureOf`, in their order: all properties at distance 1, then at 2 and 3. */
export const TEXTURE_NAMES = DISTANCES.flatMap((distance) =>
  TEXTURE_PROPERTIES.map((property) => `${property} ${distance}`),
);

export interface GreyImage {
  width: number;
  height: number;
  /** Row by row; 0 for masked pixels. */
  levels: Uint8Array;
}

/**
 * Returns the texture of an image: 18 values named by `TEXTURE_NAMES`, each averaged over four angles. Null if at some distance and angle
 * no pair of pixels is unmasked.
 */
export function textureOf(image: GreyImage): Float64Array | null {
  const texture = new Float64Array(TEXTURE_NAMES.length);
  const pairs = new Uint32Array(LEVELS * LEVELS);
  // At 45 and 135 degrees, distances 1 and 2 round to the same offset.
  const known = new Map<string, PropertyValues | null>();
  for (const [d, distance] of DISTANCES.entries()) {
    for (const angle of ANGLES) {
      const down = Math.round(Math.sin(angle) * distance);
      const right = Math.round(Math.cos(angle) * distance);
      const step = `${down} ${right}`;
      if (!known.has(step)) {
        countPairs(image, down, right, pairs);
        known.set(step, propertiesOf(pairs));
      }
      const values = known.get(step);
      if (!values) return null;
      for (const [p, property] of TEXTURE_PROPERTIES.entries())
        texture[d * TEXTURE_PROPERTIES.length + p] += values[property] / ANGLES.length;
    }
  }
  return texture;
}

/** Counts how often level b is `down` (0 or more) and `right` of level a: `pairs[256 a + b]`. */
function countPairs({ width, height, levels }: GreyImage, down: number, right: number, pairs: Uint32Array) {
  pairs.fill(0);
  const from = Math.max(0, -right);
  const to = Math.min(width, width - right);
  const step = down * width + right;
  for (let row = 0; row < height - down; row++) {
    const end = row * width + to;
    for (let at = row * width + from; at < end; at++) pairs[(levels[at] << 8) | levels[at + step]]++;
  }
}

type PropertyValues = Record<TextureProperty, number>;

/** Returns the properties of the symmetric matrix of these pairs without masked pixels; null if no pair is left. */
function propertiesOf(pairs: Uint32Array): PropertyValues | null {
  // Integers, so that the order of summation does not affect the result. Only the half with i <= j of the symmetric matrix is visited.
  const byDifference = new Float64Array(LEVELS);
  const byLevel = new Float64Array(LEVELS);
  let squaredCounts = 0;
  for (let i = MASKED + 1; i < LEVELS; i++) {
    for (let j = i; j < LEVELS; j++) {
      const count = pairs[(i << 8) | j] + pairs[(j << 8) | i];
      if (count === 0) continue;
      const both = i === j ? 1 : 2;
      byDifference[j - i] += both * count;
      byLevel[i] += count;
      if (i !== j) byLevel[j] += count;
      squaredCounts += both * count * count;
    }
  }
  const total = byLevel.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const mean = (counts: Float64Array, of: (value: number) => number) =>
    counts.reduce((sum, count, value) => sum + count * of(value), 0) / total;
  const contrast = mean(byDifference, (difference) => difference ** 2);
  const level = mean(byLevel, (value) => value);
  const variance = mean(byLevel, (value) => (value - level) ** 2);
  const asm = squaredCounts / total ** 2;
  return {
    contrast,
    dissimilarity: mean(byDifference, (difference) => difference),
    homogeneity: mean(byDifference, (difference) => 1 / (1 + difference ** 2)),
    energy: Math.sqrt(asm),
    // E[(i - j)^2] = 2 variance - 2 covariance, because the matrix is symmetric. For a single level scikit-image returns 1.
    correlation: variance > 0 ? 1 - contrast / (2 * variance) : 1,
    ASM: asm,
  };
}

/** Minimum number of clear pixels. */
const MIN_PIXELS = 500;

type TileTexture = { values: number[] } | { skipped: string };

/** Returns the texture of a stored tile, whose date must have red, green and blue. */
export async function textureOfTile(files: AcquisitionFiles): Promise<TileTexture> {
  const read = await readAcquisitions([files]);
  if ('skipped' in read) return read;
  const [date] = read.dates;
  const { width, height, bands } = date;
  const { red, green, blue } = bands;
  const levels = greyLevels({ red: red!, green: green!, blue: blue! }, clearMask(date, RGB_BANDS));
  const seen = levels.reduce((count, level) => count + Math.min(1, level), 0);
  if (seen < MIN_PIXELS) return { skipped: `fewer than ${MIN_PIXELS} clear pixels in the clearest image` };
  const texture = textureOf({ width, height, levels });
  return texture ? { values: [...texture] } : { skipped: 'no two clear pixels near each other' };
}
