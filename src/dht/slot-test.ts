import type { GridName } from '../geocode/index.js';
import type { ColumnIndex } from '../storage/index.js';
import { type PrefixLengths, slotOf } from './slots.js';

/** Places of which the slots are known; more than any region has. */
const MOST_KNOWN = 100_000;

/** Whether the slot of a cell is wanted. Neighbours in a list are mostly of one slot, which is worked out once. */
export function slotTest(
  wants: (slot: number) => boolean,
  prefixLengths: PrefixLengths,
): (cell: { grid: GridName; geocode: string }) => boolean {
  const known = new Map<string, boolean>();
  return ({ grid, geocode }) => {
    const length = prefixLengths[grid];
    const place = `${grid}/${geocode.slice(0, length)}`;
    let answer = known.get(place);
    if (answer === undefined) {
      answer = wants(slotOf(grid, geocode, length));
      if (known.size < MOST_KNOWN) known.set(place, answer);
    }
    return answer;
  };
}

/** The same of rows of an index, until it changes. Rows come cell by cell, and a cell is looked at once. */
export function rowTest(
  index: ColumnIndex,
  wants: (slot: number) => boolean,
  prefixLengths: PrefixLengths,
): (row: number) => boolean {
  const isOf = slotTest(wants, prefixLengths);
  const { grid, key, precision } = index.columns;
  let last = { grid: -1, key: -1, precision: -1, answer: false };
  return (row) => {
    if (key[row] !== last.key || precision[row] !== last.precision || grid[row] !== last.grid)
      last = {
        grid: grid[row],
        key: key[row],
        precision: precision[row],
        answer: isOf(index.cellOf(row)),
      };
    return last.answer;
  };
}
