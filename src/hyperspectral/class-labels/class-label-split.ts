/** Splits labelled pixels into training, tuning and validation. */
import { createHash } from 'node:crypto';

export const SETS = ['train', 'tune', 'validation'] as const;
/** Indexes of `SETS`. */
export const TRAIN = 0;
export const TUNE = 1;
export const VALIDATION = 2;
export type SplitKind = 'place' | 'random';

/** Side of the squares that belong to one set. Neighbouring pixels are similar, so a random split overestimates the accuracy. */
const BLOCK_SIDE_PX = 32;
/** Squares are divided into 20 parts: 5 validate, 3 tune, and the others train. */
const PARTS = 20;
const VALIDATION_PARTS = 5;
const TUNE_PARTS = 3;

/** Returns a function for the set of a pixel of a cell, as an index of `SETS`. The set is the same on all dates. */
export function setOf(geocode: string, kind: SplitKind): (column: number, row: number) => number {
  const side = kind === 'place' ? BLOCK_SIDE_PX : 1;
  const known = new Map<string, number>();
  return (column, row) => {
    const square = `${Math.floor(column / side)} ${Math.floor(row / side)}`;
    let part = known.get(square);
    if (part === undefined) {
      const digest = createHash('sha256').update(`${geocode} ${square}`).digest();
      part = digest.readUInt32LE(0) % PARTS;
      known.set(square, part);
    }
    if (part < VALIDATION_PARTS) return VALIDATION;
    return part < VALIDATION_PARTS + TUNE_PARTS ? TUNE : TRAIN;
  };
}
