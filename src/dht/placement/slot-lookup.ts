import { type GridName, grids } from '../../grid/index.js';
import type { ColumnIndex, IndexRun, RunFilter } from '../../storage/index.js';
import type { SlotSet } from './slot-set.js';
import { type PrefixLengths, SLOTS, slotOf } from './slots.js';

/** Places of which the slots are known; more than any region has. */
const MAX_CACHED_CELLS = 100_000;

/** The slots of cells. Neighbours in a list are mostly of one slot, which is worked out once. */
export function cellSlotLookup(
  prefixLengths: PrefixLengths,
): (cell: { grid: GridName; geocode: string }) => number {
  const known = new Map<string, number>();
  return ({ grid, geocode }) => {
    const length = prefixLengths[grid];
    const place = `${grid}/${geocode.slice(0, length)}`;
    let slot = known.get(place);
    if (slot === undefined) {
      slot = slotOf(grid, geocode, length);
      if (known.size < MAX_CACHED_CELLS) known.set(place, slot);
    }
    return slot;
  };
}

/** The slots of the rows of an index, by run. Computes with the keys of cells, and the geocode of a place only once. */
export function rowSlotLookup(prefixLengths: PrefixLengths): (rows: IndexRun) => (row: number) => number {
  const slotOfCell = cellSlotLookup(prefixLengths);
  const lengths = grids.map(({ name }) => prefixLengths[name]);
  /** How far apart the keys of places are. */
  const spans = grids.map((one, i) => one.key(one.geocode(0, lengths[i]!)).span);
  const known = grids.map(() => new Map<number, number>());
  return (rows) => {
    const { grid, key, precision } = rows.columns;
    let lastGrid = -1;
    let lastPlace = -1;
    let slot = -1;
    return (row) => {
      const g = grid[row]!;
      // A cell that is coarser than a place is one by itself: its own key would be that of a place in it.
      if (precision[row]! < lengths[g]!) return slotOfCell(rows.cellOf(row));
      const place = Math.floor(key[row]! / spans[g]!);
      if (place === lastPlace && g === lastGrid) return slot;
      const found = known[g]!.get(place) ?? slotOfCell(rows.cellOf(row));
      if (known[g]!.size < MAX_CACHED_CELLS) known[g]!.set(place, found);
      lastGrid = g;
      lastPlace = place;
      slot = found;
      return found;
    };
  };
}

/** A test of the rows of an index: whether they are in some slots. */
export function slotTest(wanted: SlotSet, prefixLengths: PrefixLengths): RunFilter {
  const slots = rowSlotLookup(prefixLengths);
  return (rows) => {
    const slotOfRow = slots(rows);
    return (row) => wanted.has(slotOfRow(row));
  };
}

/** The bytes of the tiles in an index, by slot. */
export function bytesBySlot(index: ColumnIndex, prefixLengths: PrefixLengths): Float64Array {
  const sums = new Float64Array(SLOTS);
  const slots = rowSlotLookup(prefixLengths);
  index.forEach({}, (rows) => {
    const slotOfRow = slots(rows);
    const { bytes } = rows.columns;
    return (row) => {
      sums[slotOfRow(row)]! += bytes[row]!;
    };
  });
  return sums;
}
