/**
 * Kinds of ground and vegetation of the synthetic world. A pixel is a mixture of ground and green leaves; the green
 * fraction follows the season. Reflectances are typical published values for each surface, rounded.
 */

/** The bands of a spectrum, Landsat 8 numbering: 1 coastal, 2 blue, 3 green, 4 red, 5 NIR, 6 SWIR1, 7 SWIR2. */
export type Spectrum = readonly [
  coastal: number,
  blue: number,
  green: number,
  red: number,
  nir: number,
  swir1: number,
  swir2: number,
];

export type LandCover = 'water' | 'forest' | 'crop' | 'meadow' | 'town' | 'bare';

export interface Kind {
  landCover: LandCover;
  ground: Spectrum;
  leaf: Spectrum;
  /** Green fraction through the year: [day of year, fraction] in order, linear between, constant outside. */
  season: readonly (readonly [day: number, green: number])[];
}

const SOIL: Spectrum = [0.07, 0.085, 0.12, 0.165, 0.22, 0.3, 0.25];
const PEAT: Spectrum = [0.02, 0.022, 0.033, 0.036, 0.06, 0.07, 0.06];
const LITTER: Spectrum = [0.025, 0.03, 0.045, 0.05, 0.15, 0.16, 0.1];
const ROCK: Spectrum = [0.13, 0.15, 0.18, 0.205, 0.25, 0.3, 0.27];
const STREETS: Spectrum = [0.09, 0.1, 0.115, 0.125, 0.145, 0.17, 0.16];
const WATER: Spectrum = [0.07, 0.06, 0.045, 0.028, 0.018, 0.006, 0.004];
const CROP_LEAF: Spectrum = [0.02, 0.025, 0.055, 0.028, 0.42, 0.2, 0.09];
const GRASS: Spectrum = [0.02, 0.03, 0.065, 0.04, 0.36, 0.2, 0.1];
/** Withering branches that remain after a clear-cut. Like the roofs, they have the colours of a forest, with little NIR. */
const BRASH: Spectrum = [0.018, 0.022, 0.04, 0.032, 0.065, 0.12, 0.09];
/** Roofs with green coating. */
const ROOFS: Spectrum = [0.02, 0.024, 0.042, 0.03, 0.045, 0.09, 0.08];
const NEEDLES: Spectrum = [0.018, 0.022, 0.04, 0.03, 0.205, 0.1, 0.05];
/** Broad leaves have the colour of needles: they differ only in NIR and in the coarser crowns. */
const BROAD_LEAF: Spectrum = [0.018, 0.022, 0.041, 0.03, 0.34, 0.16, 0.07];
/** A crop on peat, as dark in colour as a forest but with half its NIR. */
const PEAT_LEAF: Spectrum = [0.018, 0.022, 0.043, 0.027, 0.18, 0.12, 0.06];

export const KINDS = [
  { landCover: 'water', ground: WATER, leaf: WATER, season: [[1, 0]] },
  { landCover: 'bare', ground: ROCK, leaf: GRASS, season: [[1, 0.01]] },
  { landCover: 'bare', ground: SOIL, leaf: GRASS, season: [[1, 0.02]] },
  {
    landCover: 'town',
    ground: STREETS,
    leaf: GRASS,
    season: [
      [95, 0.3],
      [140, 1],
      [275, 0.8],
      [310, 0.4],
    ],
  },
  {
    landCover: 'forest',
    ground: LITTER,
    leaf: NEEDLES,
    season: [
      [95, 0.85],
      [150, 0.97],
      [275, 0.95],
      [310, 0.88],
    ],
  },
  {
    landCover: 'forest',
    ground: LITTER,
    leaf: BROAD_LEAF,
    season: [
      [100, 0.05],
      [140, 0.97],
      [275, 0.9],
      [310, 0.05],
    ],
  },
  {
    landCover: 'meadow',
    ground: SOIL,
    leaf: GRASS,
    season: [
      [80, 0.38],
      [140, 0.9],
      [200, 0.75],
      [260, 0.75],
      [310, 0.35],
    ],
  },
  {
    landCover: 'crop',
    ground: SOIL,
    leaf: CROP_LEAF,
    season: [
      [80, 0.3],
      [140, 0.92],
      [195, 0.3],
      [215, 0.08],
      [290, 0.12],
    ],
  },
  {
    landCover: 'crop',
    ground: SOIL,
    leaf: CROP_LEAF,
    season: [
      [80, 0.25],
      [120, 0.9],
      [185, 0.35],
      [205, 0.12],
      [290, 0.4],
    ],
  },
  {
    landCover: 'crop',
    ground: SOIL,
    leaf: CROP_LEAF,
    season: [
      [120, 0.06],
      [150, 0.25],
      [200, 0.88],
      [245, 0.7],
      [275, 0.2],
    ],
  },
  {
    landCover: 'crop',
    ground: PEAT,
    leaf: PEAT_LEAF,
    season: [
      [90, 0.08],
      [150, 0.75],
      [250, 0.75],
      [290, 0.25],
    ],
  },
  { landCover: 'bare', ground: BRASH, leaf: NEEDLES, season: [[1, 0.05]] },
  { landCover: 'town', ground: ROOFS, leaf: GRASS, season: [[1, 0.05]] },
] as const satisfies readonly Kind[];

/** Indices into `KINDS`. */
export const Kinds = {
  water: 0,
  rock: 1,
  soil: 2,
  town: 3,
  conifer: 4,
  broadleaf: 5,
  meadow: 6,
  winterWheat: 7,
  rape: 8,
  maize: 9,
  peatCrop: 10,
  /** These two occur only where land has changed. */
  brash: 11,
  roofs: 12,
} as const;

/** Green fraction of a kind on a day of the year, 0-1. */
export function greenFraction(kind: Kind, day: number): number {
  const { season } = kind;
  let previous = season[0];
  for (const point of season) {
    if (day < point[0]) {
      if (point === previous) return point[1];
      return previous[1] + ((point[1] - previous[1]) * (day - previous[0])) / (point[0] - previous[0]);
    }
    previous = point;
  }
  return previous[1];
}
