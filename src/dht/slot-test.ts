import { type GridName, grids } from '../geocode/index.js';
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

/** The same of rows of an index, until it changes. It works with the keys of cells, and makes no text of them but once a place. */
export function rowTest(
  index: ColumnIndex,
  wants: (slot: number) => boolean,
  prefixLengths: PrefixLengths,
): (row: number) => boolean {
  const isOf = slotTest(wants, prefixLengths);
  const { grid, key, precision } = index.columns;
  const lengths = grids.map(({ name }) => prefixLengths[name]);
  /** How far apart the keys of places are. */
  const spans = grids.map((one, i) => one.key(one.geocode(0, lengths[i]!)).span);
  const known = grids.map(() => new Map<number, boolean>());
  let lastGrid = -1;
  let lastPlace = -1;
  let answer = false;
  return (row) => {
    const g = grid[row]!;
    // A cell that is coarser than a place is one by itself: its own key would be that of a place in it.
    if (precision[row]! < lengths[g]!) return isOf(index.cellOf(row));
    const place = Math.floor(key[row]! / spans[g]!);
    if (place === lastPlace && g === lastGrid) return answer;
    const found = known[g]!.get(place) ?? isOf(index.cellOf(row));
    if (known[g]!.size < MOST_KNOWN) known[g]!.set(place, found);
    lastGrid = g;
    lastPlace = place;
    answer = found;
    return found;
  };
}
