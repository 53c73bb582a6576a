/**
 * Slots: equal ranges of the SHA-1 space, to which tiles and scenes are hashed. Finds the slots of cells, of rows of an index, and of a
 * search.
 */
import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { type Grid, type GridName, grids } from '../grid/index.js';
import {
  type CellKeyRange,
  type ColumnIndex,
  type IndexRun,
  isWithin,
  mergeRanges,
  type RunFilter,
  type Selection,
} from '../storage/index.js';
import { badSlots } from './errors.js';

/** Number of slots: 14 bits of a digest. */
export const SLOTS = 16_384;

/** All slots, ascending. Read-only. */
export const ALL_SLOTS: Uint16Array = Uint16Array.from({ length: SLOTS }, (_, slot) => slot);

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
/** Prefixes for which a table has room: 2 bytes each. */
const MAX_TABLE = 2 ** 22;

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

/** The slots of prefixes that were computed before, by their number. */
interface PrefixSlots {
  get(prefix: number): number | undefined;
  set(prefix: number, slot: number): void;
}

/** One table for each grid of a cluster: all of its searches share them. */
const slotsByCluster = new WeakMap<PrefixLengths, PrefixSlots[]>();

function prefixSlots(prefixLengths: PrefixLengths): PrefixSlots[] {
  const shared = slotsByCluster.get(prefixLengths);
  if (shared) return shared;
  const tables = grids.map((grid): PrefixSlots => {
    const length = prefixLengths[grid.name];
    const spanAt = (precision: number) => grid.key(grid.geocode(0, precision)).span;
    const prefixes = (spanAt(length) / spanAt(length + 1)) ** length;
    if (prefixes > MAX_TABLE) {
      const slots = new Map<number, number>();
      return {
        get: (prefix) => slots.get(prefix),
        set: (prefix, slot) => {
          if (slots.size < MAX_CACHED_CELLS) slots.set(prefix, slot);
        },
      };
    }
    /** Slots from 1; 0 if unknown. */
    const slots = new Uint16Array(prefixes);
    return {
      get: (prefix) => (slots[prefix] ? slots[prefix]! - 1 : undefined),
      set: (prefix, slot) => {
        slots[prefix] = slot + 1;
      },
    };
  });
  slotsByCluster.set(prefixLengths, tables);
  return tables;
}

/** Returns the slots of the rows of an index, by run. Works on the keys of cells and computes each prefix only once. */
export function rowSlotLookup(prefixLengths: PrefixLengths): (rows: IndexRun) => (row: number) => number {
  const slotOfCell = cellSlotLookup(prefixLengths);
  const lengths = grids.map(({ name }) => prefixLengths[name]);
  /** Distance between the keys of neighbouring prefixes. */
  const spans = grids.map((one, i) => one.key(one.geocode(0, lengths[i]!)).span);
  const slotsOfPrefixes = prefixSlots(prefixLengths);
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
      const found = slotsOfPrefixes[g]!.get(prefix) ?? slotOfCell(rows.cellOf(row));
      slotsOfPrefixes[g]!.set(prefix, found);
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
export async function bytesBySlot(index: ColumnIndex, prefixLengths: PrefixLengths): Promise<Float64Array> {
  const sums = new Float64Array(SLOTS);
  const slots = rowSlotLookup(prefixLengths);
  await index.forEach({}, (rows) => {
    const slotOfRow = slots(rows);
    const { bytes } = rows.columns;
    return (row) => {
      sums[slotOfRow(row)]! += bytes[row]!;
    };
  });
  return sums;
}

/** A search over more prefixes asks all slots, because these prefixes are on nearly all nodes of any cluster. */
const MAX_SEARCH_PREFIXES = 2_048;

/**
 * The slots of all tiles within the ranges and among the ids, if given; ascending and unique. A slot is included only if such a tile could
 * be in it, or if the ranges have too many prefixes. The result is read-only.
 */
export function candidateSlots(
  { ranges, ids }: Pick<Selection, 'ranges' | 'ids'>,
  prefixLengths: PrefixLengths,
): Uint16Array {
  const disjoint = ranges && mergeRanges(ranges);
  if (ids) {
    const cells = [...cellsInIds(ids)].filter(
      ({ grid, geocode }) => !disjoint || isWithin(disjoint, grid, grids[grid]!.key(geocode).key),
    );
    return slotsOf(cells, prefixLengths);
  }
  if (!ranges) return ALL_SLOTS;
  // A range of a single cell is hashed on its own, because other cells share its key.
  const prefixes = ranges.flatMap((range) => singleCell(range) ?? []);
  const others = mergeRanges(ranges.filter((range) => !singleCell(range)));
  for (const prefix of prefixesWithin(others, prefixLengths)) {
    if (prefixes.length >= MAX_SEARCH_PREFIXES) return ALL_SLOTS;
    prefixes.push(prefix);
  }
  return slotsOf(prefixes, prefixLengths);
}

/** The cell of a range that consists of a single cell. */
function singleCell({ grid: name, from, to, precision }: CellKeyRange): GridCell | undefined {
  if (precision === undefined || to !== from + 1) return undefined;
  const code = grids.findIndex((grid) => grid.name === name);
  return { grid: code, geocode: grids[code]!.geocode(from, precision) };
}

function slotsOf(cells: readonly GridCell[], prefixLengths: PrefixLengths): Uint16Array {
  const slots = new Set<number>();
  for (const { grid, geocode } of cells) {
    const { name } = grids[grid]!;
    slots.add(slotOf(name, geocode, prefixLengths[name]));
  }
  return Uint16Array.from(slots).sort();
}

type CodedRange = ReturnType<typeof mergeRanges>[number];

interface GridCell {
  /** Index of its grid in `grids`. */
  grid: number;
  geocode: string;
}

/**
 * The hashed texts of all tiles in some ranges, each once: every prefix below which the ranges contain a key, and every cell shorter than a
 * prefix whose own key is in the ranges.
 */
function* prefixesWithin(ranges: readonly CodedRange[], prefixLengths: PrefixLengths): Generator<GridCell> {
  for (const [code, grid] of grids.entries()) {
    const longest = prefixLengths[grid.name];
    for (let precision = grid.minPrecision; precision <= longest; precision++) {
      const span = keysPerCell(grid, precision);
      // A prefix counts if any of its keys is in the ranges; a shorter cell counts if its first key is.
      const firstOf = precision === longest ? Math.floor : Math.ceil;
      let next = 0;
      for (const range of ranges) {
        if (range.grid !== code) continue;
        next = Math.max(next, firstOf(range.from / span));
        for (; next * span < range.to; next++)
          yield { grid: code, geocode: grid.geocode(next * span, precision) };
      }
    }
  }
}

/** The number of keys of a cell of the given precision. */
function keysPerCell(grid: Grid, precision: number): number {
  return grid.key(grid.geocode(0, precision)).span;
}

/**
 * The possible cells of tile ids. The ids `<collection>_<scene>_<cell>` and `..._<source>-<digest>` contain the cell between
 * underscores. A scene id may contain parts that look like cells, so all parts from the third on are returned.
 */
function* cellsInIds(ids: Iterable<string>): Generator<GridCell> {
  for (const id of ids) {
    for (const part of id.split('_').slice(2)) {
      const code = grids.findIndex(({ idPrefix }) => idPrefix === part[0]);
      const geocode = part.slice(1);
      if (grids[code]?.accepts(geocode)) yield { grid: code, geocode };
    }
  }
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
