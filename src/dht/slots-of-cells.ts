import { type GridName, grids } from '../geocode/index.js';
import type { ColumnIndex } from '../storage/index.js';
import { type PrefixLengths, SLOTS, slotOf } from './slots.js';

/** Places of which the slots are known; more than any region has. */
const MOST_KNOWN = 100_000;

/** The slots of cells. Neighbours in a list are mostly of one slot, which is worked out once. */
export function slotsOfCells(
  prefixLengths: PrefixLengths,
): (cell: { grid: GridName; geocode: string }) => number {
  const known = new Map<string, number>();
  return ({ grid, geocode }) => {
    const length = prefixLengths[grid];
    const place = `${grid}/${geocode.slice(0, length)}`;
    let slot = known.get(place);
    if (slot === undefined) {
      slot = slotOf(grid, geocode, length);
      if (known.size < MOST_KNOWN) known.set(place, slot);
    }
    return slot;
  };
}

/** The same of rows of an index, until it changes. It works with the keys of cells, and makes no text of them but once a place. */
export function slotsOfRows(index: ColumnIndex, prefixLengths: PrefixLengths): (row: number) => number {
  const slotOfCell = slotsOfCells(prefixLengths);
  const { grid, key, precision } = index.columns;
  const lengths = grids.map(({ name }) => prefixLengths[name]);
  /** How far apart the keys of places are. */
  const spans = grids.map((one, i) => one.key(one.geocode(0, lengths[i]!)).span);
  const known = grids.map(() => new Map<number, number>());
  let lastGrid = -1;
  let lastPlace = -1;
  let slot = -1;
  return (row) => {
    const g = grid[row]!;
    // A cell that is coarser than a place is one by itself: its own key would be that of a place in it.
    if (precision[row]! < lengths[g]!) return slotOfCell(index.cellOf(row));
    const place = Math.floor(key[row]! / spans[g]!);
    if (place === lastPlace && g === lastGrid) return slot;
    const found = known[g]!.get(place) ?? slotOfCell(index.cellOf(row));
    if (known[g]!.size < MOST_KNOWN) known[g]!.set(place, found);
    lastGrid = g;
    lastPlace = place;
    slot = found;
    return found;
  };
}

/** The bytes of the tiles in an index, by slot. */
export function bytesOfSlots(index: ColumnIndex, prefixLengths: PrefixLengths): Float64Array {
  const sums = new Float64Array(SLOTS);
  const slotOfRow = slotsOfRows(index, prefixLengths);
  const { bytes } = index.columns;
  index.forEach({}, (row) => {
    sums[slotOfRow(row)]! += bytes[row]!;
  });
  return sums;
}
