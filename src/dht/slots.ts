/** Slots: equal ranges of the SHA-1 space, to which tiles and scenes are hashed. */
import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { type GridName, grids } from '../grid/index.js';
import type { ColumnIndex, IndexRun, RunFilter } from '../storage/index.js';
import { badSlots } from './errors.js';

/** Number of slots: 14 bits of a digest. */
export const SLOTS = 16_384;

/** Number of leading characters of a geocode that determine its slot, by grid; fixed for the lifetime of a cluster. */
export type PrefixLengths = Readonly<Record<GridName, number>>;

/** A geohash-4 cell is 39 km wide at the equator, a quadtile of zoom 9 is 78 km wide, so neighbourhoods share a slot. */
export const DEFAULT_PREFIX_LENGTHS: PrefixLengths = { geohash: 4, quadtile: 9 };

/**
 * The slot of a cell: the first 14 bits of SHA-1(grid + "/" + geocode.slice(0, prefixLength)). A shorter geocode is hashed completely.
 */
export function slotOf(grid: GridName, geocode: string, prefixLength: number): number {
  return slotOfText(`${grid}/${geocode.slice(0, prefixLength)}`);
}

/** The slot of a cell, by the prefix lengths of its cluster. */
export function slotOfCell(
  { grid, geocode }: { grid: GridName; geocode: string },
  prefixLengths: PrefixLengths,
): number {
  return slotOf(grid, geocode, prefixLengths[grid]);
}

/** The slot of a scene's record: the first 14 bits of SHA-1(collection + "/" + scene). */
export function slotOfScene(collection: string, scene: string): number {
  return slotOfText(`${collection}/${scene}`);
}

/** Not cached: a digest takes a microsecond, and a look-up in a map hardly less. */
function slotOfText(text: string): number {
  return Number.parseInt(hash('sha1', text).slice(0, 4), 16) >>> 2;
}

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

/** A set of slots. */
export class SlotSet {
  private readonly bits = new Uint8Array(SLOTS / 8);
  private count = 0;

  constructor(slots: Iterable<number> = []) {
    for (const slot of slots) this.add(slot);
  }

  get size(): number {
    return this.count;
  }

  has(slot: number): boolean {
    return ((this.bits[slot >>> 3] >>> (slot & 7)) & 1) === 1;
  }

  add(slot: number): void {
    if (this.has(slot)) return;
    this.bits[slot >>> 3] |= 1 << (slot & 7);
    this.count++;
  }

  /** Iterates in ascending order. */
  *[Symbol.iterator](): Generator<number> {
    for (let slot = 0; slot < SLOTS; slot++) if (this.has(slot)) yield slot;
  }

  /** A short text: a list of up to 64 slots, otherwise the deflated bits as base64, at most 2.8 kB. */
  toText(): string {
    return this.count <= 64 ? [...this].join(',') : `z${deflateRawSync(this.bits).toString('base64')}`;
  }

  private static ofBits(bits: Uint8Array): SlotSet {
    const set = new SlotSet();
    set.bits.set(bits);
    for (let byte of bits) for (; byte > 0; byte &= byte - 1) set.count++;
    return set;
  }

  /** Parses the result of `toText`. Throws TW_DHT_BAD_SLOTS. */
  static fromText(text: string): SlotSet {
    if (text === '') return new SlotSet();
    if (text.startsWith('z')) return SlotSet.ofBits(bitsOf(text));
    const slots = text.split(',').map(Number);
    if (!/^\d{1,5}(,\d{1,5})*$/.test(text) || slots.some((slot) => slot >= SLOTS)) throw badSlots(text);
    return new SlotSet(slots);
  }
}

function bitsOf(text: string): Uint8Array {
  let bits: Buffer;
  try {
    bits = inflateRawSync(Buffer.from(text.slice(1), 'base64'), { maxOutputLength: SLOTS / 8 });
  } catch (error) {
    throw badSlots.because(error, text);
  }
  if (bits.length !== SLOTS / 8) throw badSlots(text);
  return bits;
}
