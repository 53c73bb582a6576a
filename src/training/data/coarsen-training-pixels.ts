/** Resamples the pixels of a date to a coarser size: bands by the mean, mask codes by the worst code. */
import type { PixelGrid } from '../../grid/index.js';
import { Mask, type PixelArray } from '../../raster/index.js';

/** Mask codes by priority: a coarse pixel has the first of these codes that occurs in the pixels that it covers. */
const MASK_PRIORITY: number[] = [
  Mask.nodata,
  Mask.cloud,
  Mask.shadow,
  Mask.snow,
  Mask.filled,
  Mask.notAssessed,
  Mask.clear,
];

/** Rank of each mask code, the worst first. */
const SEVERITY = new Uint8Array(256).fill(MASK_PRIORITY.length);
MASK_PRIORITY.forEach((code, rank) => {
  SEVERITY[code] = rank;
});

/** Returns the first of the codes by priority. */
export const worstCode = (codes: number[]): number =>
  codes.reduce((a, b) => (SEVERITY[b] < SEVERITY[a] ? b : a));

/** Resamples mask codes to a coarser size. A pixel has the worst code of all pixels that it covers, even partly. */
export function coarsenMask(codes: PixelArray, fine: PixelGrid, coarse: PixelGrid): Uint8Array {
  return coarsen(new Uint8Array(codes), partsOf(fine, coarse), worstCode);
}

/** The fine pixels [from, to) of a row or column that each coarse pixel covers, even partly. */
type Part = [from: number, to: number];

export interface Parts {
  columns: Part[];
  rows: Part[];
}

/** Resamples to a coarser size. `reduce` returns the value of a pixel from all values that it covers. */
export function coarsen<T extends Float32Array | Uint8Array>(
  values: T,
  { columns, rows }: Parts,
  reduce: (covered: number[]) => number,
): T {
  const size = columns.length * rows.length;
  if (size === values.length) return values;
  const width = columns.at(-1)![1];
  const coarser = values.slice(0, size) as T;
  let pixel = 0;
  for (const [top, bottom] of rows)
    for (const [left, right] of columns) {
      const covered: number[] = [];
      for (let row = top; row < bottom; row++)
        for (let column = left; column < right; column++) covered.push(values[row * width + column]);
      coarser[pixel++] = reduce(covered);
    }
  return coarser;
}

/** Returns the parts of a whole image. */
export function partsOf(fine: PixelGrid, coarse: PixelGrid): Parts {
  return {
    columns: coveredParts(fine.width, coarse.width, span(0, coarse.width)).parts,
    rows: coveredParts(fine.height, coarse.height, span(0, coarse.height)).parts,
  };
}

export const span = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => from + i);

/**
 * A row or column of `fine` pixels is divided into `coarse` equal parts. Returns the range of fine pixels that the parts `wanted` cover,
 * and each part relative to the start of that range.
 */
export function coveredParts(
  fine: number,
  coarse: number,
  wanted: number[],
): { from: number; count: number; parts: Part[] } {
  const parts = wanted.map(
    (i): Part => [Math.floor((i * fine) / coarse), Math.ceil(((i + 1) * fine) / coarse)],
  );
  const [from] = parts[0];
  const count = parts.at(-1)![1] - from;
  return { from, count, parts: parts.map(([start, end]) => [start - from, end - from]) };
}

/** NaN if no value is finite. */
export function meanOfFinite(values: Iterable<number>): number {
  let sum = 0;
  let count = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    sum += value;
    count++;
  }
  return sum / count;
}
