import { fractalNoise, type View } from './noise.js';
import { hash } from './random.js';

/** Fractions of the endmembers: an array for each endmember, a value for each pixel, row by row. They sum to 1 in each pixel. */
export type Abundances = Float32Array[];

/** Largest features of the mixtures, m. */
const SPACING = 900;
/** Each square of this width has a pure patch of PURE_SIDE x PURE_SIDE pixels at a random position. */
const SQUARE = 16;
const PURE_SIDE = 2;

/**
 * Shares that vary smoothly in space, so that each endmember dominates somewhere, and small patches of one endmember alone, which go
 * through the endmembers in turn.
 */
export function makeAbundances(view: View, count: number, seed: number): Abundances {
  const pixels = view.width * view.height;
  const abundances = Array.from({ length: count }, (_, i) => fractalNoise(view, SPACING, 3, seed + 1009 * i));
  for (let i = 0; i < pixels; i++) {
    let sum = 0;
    for (const one of abundances) {
      const squared = one[i]! * one[i]!;
      const weight = squared * squared * squared;
      one[i] = weight;
      sum += one[i]!;
    }
    for (const one of abundances) one[i]! /= sum;
  }
  setPurePatches(abundances, view, seed);
  return abundances;
}

function setPurePatches(abundances: Abundances, { width, height }: View, seed: number): void {
  let patch = 0;
  for (let top = 0; top + SQUARE <= height; top += SQUARE)
    for (let left = 0; left + SQUARE <= width; left += SQUARE, patch++) {
      const place = hash(left, top, seed + 7);
      const column = left + (place % (SQUARE - PURE_SIDE + 1));
      const row = top + ((place >>> 16) % (SQUARE - PURE_SIDE + 1));
      for (let y = row; y < row + PURE_SIDE; y++)
        for (let x = column; x < column + PURE_SIDE; x++)
          for (const [i, one] of abundances.entries())
            one[y * width + x] = i === patch % abundances.length ? 1 : 0;
    }
}

/** The endmember with the largest share at each pixel, counted from 1; 0 is left for pixels without a class. */
export function dominantClasses(abundances: Abundances): Uint8Array {
  const [first, ...others] = abundances as [Float32Array, ...Float32Array[]];
  const classes = new Uint8Array(first.length).fill(1);
  for (const [i, largest] of first.entries()) {
    let most = largest;
    for (const [k, one] of others.entries())
      if (one[i]! > most) {
        most = one[i]!;
        classes[i] = k + 2;
      }
  }
  return classes;
}
