/** Which slots can hold the tiles that a search may match. */
import { type Grid, grids } from '../../grid/index.js';
import { type CellKeyRange, isWithin, mergeRanges, type Selection } from '../../storage/index.js';
import { type PrefixLengths, SLOTS, slotOf } from './slots.js';

/** All slots, ascending. Not to be changed. */
export const ALL_SLOTS: Uint16Array = Uint16Array.from({ length: SLOTS }, (_, slot) => slot);

/** Ranges with more prefixes than this take all slots: on any cluster these prefixes are on nearly all nodes. */
const MAX_PREFIXES = 2_048;

/**
 * The slots of all tiles that are within the ranges and among the ids, where these are given; ascending, each once. A slot
 * is named only if such a tile could exist in it, or if there are too many to tell. Not to be changed.
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
  // A single cell, whose key others share, is hashed by itself.
  const prefixes = ranges.flatMap((range) => singleCell(range) ?? []);
  const others = mergeRanges(ranges.filter((range) => !singleCell(range)));
  for (const prefix of prefixesWithin(others, prefixLengths)) {
    if (prefixes.length >= MAX_PREFIXES) return ALL_SLOTS;
    prefixes.push(prefix);
  }
  return slotsOf(prefixes, prefixLengths);
}

/** The cell that a range means where it means one. */
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
  /** The place of its grid in `grids`. */
  grid: number;
  geocode: string;
}

/**
 * What is hashed for the tiles of some ranges, each once: every prefix below which the ranges hold a key, and the cells
 * that are shorter than a prefix and whose own key is in the ranges.
 */
function* prefixesWithin(ranges: readonly CodedRange[], prefixLengths: PrefixLengths): Generator<GridCell> {
  for (const [code, grid] of grids.entries()) {
    const longest = prefixLengths[grid.name];
    for (let precision = grid.minPrecision; precision <= longest; precision++) {
      const span = keysPerCell(grid, precision);
      // A prefix counts where any of its keys is in the ranges, a shorter cell where its first one is.
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

/** How many keys a cell of a precision has. */
function keysPerCell(grid: Grid, precision: number): number {
  return grid.key(grid.geocode(0, precision)).span;
}

/**
 * The cells that tile ids may be of. `<collection>_<scene>_<cell>` and `..._<source>-<digest>` name it in one of their
 * words; a scene's id may hold words that look like cells, so all from the third on are taken.
 */
function* cellsInIds(ids: Iterable<string>): Generator<GridCell> {
  for (const id of ids) {
    for (const word of id.split('_').slice(2)) {
      const code = grids.findIndex(({ idPrefix }) => idPrefix === word[0]);
      const geocode = word.slice(1);
      if (grids[code]?.accepts(geocode)) yield { grid: code, geocode };
    }
  }
}
