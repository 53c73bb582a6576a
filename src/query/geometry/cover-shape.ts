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
    let cells = grid.cover(grid.extent, grid.minPrecision);
    for (let precision = grid.minPrecision; cells.length > 0; precision++) {
      const onEdge: string[] = [];
      for (const cell of cells) {
        const box = knownBbox(grid, cell);
        if (shape.covers(box)) inside.push(keysBelow(grid, cell));
        else if (shape.meets(box)) onEdge.push(cell);
      }
      const goOn = onEdge.length <= MAX_EDGE_CELLS && precision < grid.maxPrecision;
      for (const cell of onEdge) edge.push(goOn ? keyOf(grid, cell) : keysBelow(grid, cell));
      cells = goOn ? onEdge.flatMap((cell) => grid.children(cell)) : [];
    }
  }
  return { inside, edge };
}

/** Searches go down the same large cells again and again. */
const boxes = new Map<string, Bbox>();
const MAX_BOXES = 50_000;

function knownBbox(grid: Grid, cell: string): Bbox {
  const name = grid.letter + cell;
  const known = boxes.get(name);
  if (known) return known;
  if (boxes.size === MAX_BOXES) boxes.clear();
  const box = cellBbox(grid, cell);
  boxes.set(name, box);
  return box;
}

/** The keys of a cell and of all cells below it. */
export function keysBelow(grid: Grid, cell: string): KeyRange {
  const { key, span } = grid.key(cell);
  return { grid: grid.name, from: key, to: key + span };
}

/** The key of a cell, which the first cells below it share. */
export function keyOf(grid: Grid, cell: string): KeyRange {
  const { key } = grid.key(cell);
  return { grid: grid.name, from: key, to: key + 1 };
}
