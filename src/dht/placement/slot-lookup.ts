import { type GridName, grids } from '../../grid/index.js';
import type { ColumnIndex, IndexRun, RunFilter } from '../../storage/index.js';
import type { SlotSet } from './slot-set.js';
import { type PrefixLengths, SLOTS, slotOf } from './slots.js';

/** Prefixes with a cached slot; more than any region has. */
const MAX_CACHED_CELLS = 100_000;

/** Returns a function from cells to slots. It caches slots by prefix, because neighbouring cells mostly share one. */
export function cellSlotLookup(
  prefixLengths: PrefixLengths,
): (cell: { grid: GridName; geocode: string }) => number {
  const known = new Map<string, number>();
  return ({ grid, geocode }) => {
    const length = prefixLengths[grid];
    const prefix = `${grid}/${geocode.slice(0, length)}`;
    let slot = known.get(prefix);
    if (slot === undefined) {
      slot = slotOf(grid, geocode, length);
      if (known.size < MAX_CACHED_CELLS) known.set(prefix, slot);
    }
    return slot;
  };
}

/** Returns the slots of the rows of an index, by run. Works on the keys of cells and computes each prefix only once. */
export function rowSlotLookup(prefixLengths: PrefixLengths): (rows: IndexRun) => (row: number) => number {
  const slotOfCell = cellSlotLookup(prefixLengths);
  const lengths = grids.map(({ name }) => prefixLengths[name]);
  /** Distance between the keys of neighbouring prefixes. */
  const spans = grids.map((one, i) => one.key(one.geocode(0, lengths[i]!)).span);
  const known = grids.map(() => new Map<number, number>());
  return (rows) => {
    const { grid, key, precision } = rows.columns;
    let lastGrid = -1;
    let lastPrefix = -1;
    let slot = -1;
    return (row) => {
      const g = grid[row]!;
      // A cell that is coarser than a prefix is hashed on its own; its key equals that of a prefix inside it.
      if (precision[row]! < lengths[g]!) return slotOfCell(rows.cellOf(row));
      const prefix = Math.floor(key[row]! / spans[g]!);
      if (prefix === lastPrefix && g === lastGrid) return slot;
      const found = known[g]!.get(prefix) ?? slotOfCell(rows.cellOf(row));
      if (known[g]!.size < MAX_CACHED_CELLS) known[g]!.set(prefix, found);
      lastGrid = g;
      lastPrefix = prefix;
      slot = found;
      return found;
    };
  };
}

/** A test for rows of an index that are in the wanted slots. */
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
