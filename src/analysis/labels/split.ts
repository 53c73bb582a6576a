/** Which labelled pixels train, and which tell how good the classifier is. */
import { createHash } from 'node:crypto';

export const SETS = ['train', 'tune', 'validation'] as const;
export type SetName = (typeof SETS)[number];
export type SplitKind = 'place' | 'random';

/** Pixels of a side of the squares that belong to one set: pixels that touch look alike, so random ones flatter. */
const SQUARE = 32;
/** Of 20 parts: 5 for validation and 3 for tuning. */
const PARTS = 20;
const [VALIDATION, TUNE] = [5, 8];

/** Tells the set of a pixel of a cell: the same for all dates, as number of `SETS`. */
export function setOf(geocode: string, kind: SplitKind): (column: number, row: number) => number {
  const side = kind === 'place' ? SQUARE : 1;
  const known = new Map<string, number>();
  return (column, row) => {
    const square = `${Math.floor(column / side)} ${Math.floor(row / side)}`;
    let part = known.get(square);
    if (part === undefined) {
      const digest = createHash('sha256').update(`${geocode} ${square}`).digest();
      part = digest.readUInt32LE(0) % PARTS;
      known.set(square, part);
    }
    return part < VALIDATION ? 2 : part < TUNE ? 1 : 0;
  };
}
