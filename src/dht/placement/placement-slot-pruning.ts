/** Determines which slots can hold the tiles of a search. */
import { type Grid, grids } from '../../grid/index.js';
import { type CellKeyRange, isWithin, mergeRanges, type Selection } from '../../storage/index.js';
import { type PrefixLengths, SLOTS, slotOf } from './slots.js';

/** All slots, ascending. Read-only. */
export const ALL_SLOTS: Uint16Array = Uint16Array.from({ length: SLOTS }, (_, slot) => slot);

/** A search over more prefixes asks all slots, because these prefixes are on nearly all nodes of any cluster. */
const MAX_PREFIXES = 2_048;

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
    if (prefixes.length >= MAX_PREFIXES) return ALL_SLOTS;
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
