import { smoothstep } from './noise.js';

/** A material with its reflectance spectrum: a smooth continuum with absorption features. */
export interface Endmember {
  name: string;
  /** Points of the continuum: wavelength in nm, ascending, and reflectance 0-1. Smooth between them, level outside. */
  continuum: readonly (readonly [nanometres: number, reflectance: number])[];
  /** Each feature absorbs `depth` (0-1) of the continuum at its centre, and half of that `width` nm away (a Lorentzian). */
  absorptions: readonly { centre: number; width: number; depth: number }[];
}

/** Six materials whose spectra are at least 6 degrees apart. */
export const ENDMEMBERS: readonly Endmember[] = [
  {
    name: 'vegetation',
    continuum: [
      [400, 0.04],
      [500, 0.05],
      [555, 0.11],
      [675, 0.04],
      [760, 0.46],
      [900, 0.5],
      [1300, 0.45],
      [1650, 0.3],
      [2200, 0.16],
      [2500, 0.08],
    ],
    absorptions: [
      { centre: 970, width: 30, depth: 0.08 },
      { centre: 1200, width: 40, depth: 0.14 },
      { centre: 1450, width: 60, depth: 0.5 },
      { centre: 1940, width: 70, depth: 0.6 },
    ],
  },
  {
    name: 'dry-vegetation',
    continuum: [
      [400, 0.07],
      [700, 0.26],
      [1000, 0.44],
      [1300, 0.5],
      [1700, 0.46],
      [2500, 0.2],
    ],
    absorptions: [
      { centre: 1730, width: 25, depth: 0.1 },
      { centre: 2100, width: 50, depth: 0.3 },
      { centre: 2310, width: 40, depth: 0.2 },
    ],
  },
  {
    name: 'clay',
    continuum: [
      [400, 0.14],
      [600, 0.27],
      [1000, 0.36],
      [1700, 0.48],
      [2500, 0.46],
    ],
    absorptions: [
      { centre: 1414, width: 20, depth: 0.2 },
      { centre: 1915, width: 30, depth: 0.3 },
      { centre: 2205, width: 35, depth: 0.4 },
    ],
  },
  {
    name: 'iron-oxide',
    continuum: [
      [400, 0.03],
      [530, 0.05],
      [630, 0.26],
      [760, 0.38],
      [1300, 0.46],
      [2500, 0.42],
    ],
    absorptions: [{ centre: 880, width: 90, depth: 0.5 }],
  },
  {
    name: 'carbonate',
    continuum: [
      [400, 0.5],
      [700, 0.64],
      [1300, 0.66],
      [2000, 0.62],
      [2500, 0.5],
    ],
    absorptions: [
      { centre: 1990, width: 25, depth: 0.12 },
      { centre: 2335, width: 40, depth: 0.5 },
    ],
  },
  {
    name: 'blue-roof',
    continuum: [
      [400, 0.2],
      [460, 0.4],
      [600, 0.1],
      [900, 0.22],
      [1700, 0.26],
      [2500, 0.24],
    ],
    absorptions: [{ centre: 1720, width: 30, depth: 0.15 }],
  },
];

/** Reflectance 0-1 at a wavelength in nm. Uses only operations that IEEE 754 specifies, so it is the same on every machine. */
export function reflectanceAt({ continuum, absorptions }: Endmember, nanometres: number): number {
  let reflectance = continuum[0]![1];
  for (const [i, [to, value]] of continuum.slice(1).entries()) {
    const [from, before] = continuum[i]!;
    if (nanometres > from) reflectance = before + (value - before) * smoothstep(from, to, nanometres);
  }
  for (const { centre, width, depth } of absorptions) {
    const distance = (nanometres - centre) / width;
    reflectance *= 1 - depth / (1 + distance * distance);
  }
  return reflectance;
}
