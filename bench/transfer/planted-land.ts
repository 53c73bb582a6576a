/**
 * Land with planted textures. The kind of land determines the pattern of leaves on the ground, and how their near infrared depends on
 * their colour. So places of one kind look alike and can learn from each other.
 */
import { valueNoise } from '../../data-samples/noise.js';
import { gaussian, uniform } from '../../data-samples/random.js';

/** Reflectance of blue, green, red, near infrared and short-wave infrared. */
type Spectrum = [blue: number, green: number, red: number, nir: number, swir: number];

export interface LandKind {
  /** How much more or less leaves cover the ground at a position, -1 to 1; `x` and `y` in pixels. */
  pattern: (x: number, y: number, noise: (spacing: number) => number, seed: number) => number;
  /** Contrast of the pattern, as a fraction of the ground. */
  contrast: number;
  ground: Spectrum;
  leaf: Spectrum;
  /** The higher it is, the sooner overlapping leaves stop adding near infrared. */
  closing: number;
}

const SOIL: Spectrum = [0.085, 0.12, 0.165, 0.22, 0.3];
const PEAT: Spectrum = [0.022, 0.033, 0.036, 0.06, 0.07];
const SAND: Spectrum = [0.14, 0.19, 0.25, 0.31, 0.36];
const STREETS: Spectrum = [0.1, 0.115, 0.125, 0.145, 0.17];
const LITTER: Spectrum = [0.03, 0.045, 0.05, 0.15, 0.16];
const GRASS: Spectrum = [0.03, 0.065, 0.04, 0.36, 0.2];
const CROP: Spectrum = [0.025, 0.055, 0.028, 0.42, 0.2];
const NEEDLES: Spectrum = [0.012, 0.018, 0.014, 0.2, 0.1];
const BROAD: Spectrum = [0.018, 0.04, 0.024, 0.38, 0.16];
const VINES: Spectrum = [0.02, 0.05, 0.03, 0.3, 0.15];

const wave = (t: number) => Math.abs(2 * (t - Math.floor(t)) - 1) * 2 - 1;

export const LAND_KINDS: Record<string, LandKind> = {
  meadow: { pattern: (_x, _y, noise) => noise(30), contrast: 0.1, ground: SOIL, leaf: GRASS, closing: 1 },
  vineyard: { pattern: (x) => wave(x / 4), contrast: 0.35, ground: SAND, leaf: VINES, closing: 3 },
  strips: {
    pattern: (x, y) => Math.sign(wave((x + 0.4 * y) / 24)),
    contrast: 0.4,
    ground: SOIL,
    leaf: CROP,
    closing: 4,
  },
  forest: { pattern: (_x, _y, noise) => noise(3), contrast: 0.5, ground: LITTER, leaf: BROAD, closing: 2 },
  bog: { pattern: (_x, _y, noise) => noise(8), contrast: 0.5, ground: PEAT, leaf: NEEDLES, closing: 0.5 },
  town: {
    pattern: (x, y, _noise, seed) => 2 * uniform(Math.floor(x / 5), Math.floor(y / 5), seed) - 1,
    contrast: 0.45,
    ground: STREETS,
    leaf: GRASS,
    closing: 2,
  },
};

export interface Size {
  width: number;
  height: number;
}

/** Five bands, reflectance x 10000. A place changes from bare to green over a kilometre or two and has its own light. */
export function plantedBands(kind: LandKind, { width, height }: Size, seed: number): Uint16Array[] {
  const view = { x: 0, y: 0, width, height, pixelSize: 1 };
  const fields = new Map<number, Float32Array>();
  const field = (spacing: number) => {
    const made = fields.get(spacing) ?? valueNoise(view, spacing, seed + spacing);
    fields.set(spacing, made);
    return made;
  };
  const green = valueNoise(view, 90, seed + 1);
  // Properties that no colour shows: variety, age, water.
  const hidden = valueNoise(view, 40, seed + 2);
  const light = 0.95 + 0.1 * uniform(seed, 0, 7);
  const [shiftX, shiftY] = [Math.floor(40 * uniform(seed, 1, 7)), Math.floor(40 * uniform(seed, 2, 7))];
  const bands = kind.ground.map(() => new Uint16Array(width * height));
  for (let i = 0; i < width * height; i++) {
    const [x, y] = [i % width, Math.floor(i / width)];
    const noise = (spacing: number) => 2 * field(spacing)[i]! - 1;
    const more = kind.contrast * kind.pattern(x + shiftX, y + shiftY, noise, seed);
    const leaves = Math.min(1, Math.max(0, 0.05 + 0.9 * green[i]! + more * (0.4 + 0.6 * green[i]!)));
    const closed = (1 - Math.exp(-kind.closing * leaves)) / (1 - Math.exp(-kind.closing));
    bands.forEach((band, b) => {
      const share = b < 3 ? leaves : closed;
      const leaf = kind.leaf[b]! * (b < 3 ? 1 : 0.92 + 0.16 * hidden[i]!);
      const value = light * (kind.ground[b]! * (1 - share) + leaf * share);
      band[i] = Math.max(1, Math.round(10_000 * value + 15 * gaussian(x, y, seed + 13 * b)));
    });
  }
  return bands;
}
