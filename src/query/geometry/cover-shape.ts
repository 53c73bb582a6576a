/** Where in the order of geocodes the cells of a shape lie. */
import { type Bbox, cellBbox, type Grid, grids } from '../../geocode/index.js';
import type { KeyRange } from '../../storage/index.js';
import type { Outline } from './outline.js';

/** More cells than this on the edge of a shape are taken whole, and their tiles tested one by one. */
const MAX_EDGE_CELLS = 16;

export interface Cover {
  /**
   * Keys whose tiles all touch the shape: those below cells that lie within it. (A larger cell with the key of one of
   * these holds that cell, so it touches the shape too.)
   */
  inside: KeyRange[];
  /** Other keys whose tiles may touch it. */
  edge: KeyRange[];
}

/** Found by going down each grid from its largest cells, as long as the cells on the edge of the shape are few. */
export function coverShape(shape: Outline): Cover {
  const inside: KeyRange[] = [];
  const edge: KeyRange[] = [];
  for (const grid of grids) {
    let cells = rootsOf(grid);
    for (let precision = grid.minPrecision; cells.length > 0; precision++) {
      const onEdge: Cell[] = [];
      for (const cell of cells) {
        if (shape.covers(cell.bbox)) inside.push(cell.below);
        else if (shape.meets(cell.bbox)) onEdge.push(cell);
      }
      const goOn = onEdge.length <= MAX_EDGE_CELLS && precision < grid.maxPrecision;
      for (const cell of onEdge) edge.push(goOn ? cell.itself : cell.below);
      cells = goOn ? onEdge.flatMap((cell) => childrenOf(grid, cell)) : [];
    }
  }
  return { inside, edge };
}

/** The keys of a cell and of all cells below it. */
export function keysBelow(grid: Grid, cell: string): KeyRange {
  const { key, span } = grid.key(cell);
  return { grid: grid.name, from: key, to: key + span };
}

/** The key of a cell, which the first cells below it share, but do not mean. */
export function keyOf(grid: Grid, cell: string): KeyRange {
  const { key } = grid.key(cell);
  return { grid: grid.name, from: key, to: key + 1, precision: cell.length };
}

interface Cell {
  geocode: string;
  bbox: Bbox;
  itself: KeyRange;
  below: KeyRange;
  children?: Cell[];
}

/** Searches go down the same large cells again and again, so these are kept: all below `roots`, at most so many. */
const MAX_KEPT = 20_000;
const roots = new Map<Grid, Cell[]>();
let kept = 0;

function rootsOf(grid: Grid): Cell[] {
  if (kept > MAX_KEPT) {
    roots.clear();
    kept = 0;
  }
  const known = roots.get(grid) ?? cellsOf(grid, grid.cover(grid.extent, grid.minPrecision));
  roots.set(grid, known);
  return known;
}

function childrenOf(grid: Grid, cell: Cell): Cell[] {
  cell.children ??= cellsOf(grid, grid.children(cell.geocode));
  return cell.children;
}

function cellsOf(grid: Grid, geocodes: string[]): Cell[] {
  kept += geocodes.length;
  return geocodes.map((geocode) => ({
    geocode,
    bbox: cellBbox(grid, geocode),
    itself: keyOf(grid, geocode),
    below: keysBelow(grid, geocode),
  }));
}
