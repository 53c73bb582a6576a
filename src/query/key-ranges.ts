/** Where in the order of geocodes the tiles of an area lie. */
import { type Bbox, cellBbox, type Grid, grids } from '../geocode/index.js';
import type { KeyRange } from '../storage/index.js';
import { contains, touches } from './match-cell.js';

/** More cells than this on the edge of a box are taken whole, and their tiles tested one by one. */
const MAX_EDGE_CELLS = 16;

/** The keys of a geocode in every grid that has it, and with `recurse` those of the cells below. */
export function geocodeRanges(geocode: string, recurse: boolean): KeyRange[] {
  return grids
    .filter((grid) => grid.accepts(geocode))
    .map((grid) => (recurse ? below(grid, geocode) : itself(grid, geocode)));
}

/**
 * `inside`: keys whose tiles all touch the box: those below cells that lie within it. (A larger cell with the key of one
 * of these holds that cell, so it touches the box too.) `edge`: other keys whose tiles may touch it. Found by going down
 * each grid from its largest cells, as long as the cells on the edge of the box are few.
 */
export function bboxRanges(bbox: Bbox): { inside: KeyRange[]; edge: KeyRange[] } {
  const inside: KeyRange[] = [];
  const edge: KeyRange[] = [];
  for (const grid of grids) {
    let cells = grid.cover(grid.extent, grid.minPrecision);
    for (let precision = grid.minPrecision; cells.length > 0; precision++) {
      const onEdge: string[] = [];
      for (const cell of cells) {
        const box = cellBbox(grid, cell);
        if (contains(bbox, box)) inside.push(below(grid, cell));
        else if (touches(bbox, box)) onEdge.push(cell);
      }
      const goOn = onEdge.length <= MAX_EDGE_CELLS && precision < grid.maxPrecision;
      for (const cell of onEdge) edge.push(goOn ? itself(grid, cell) : below(grid, cell));
      cells = goOn ? onEdge.flatMap((cell) => grid.children(cell)) : [];
    }
  }
  return { inside, edge };
}

function below(grid: Grid, cell: string): KeyRange {
  const { key, span } = grid.key(cell);
  return { grid: grid.name, from: key, to: key + span };
}

function itself(grid: Grid, cell: string): KeyRange {
  const { key } = grid.key(cell);
  return { grid: grid.name, from: key, to: key + 1 };
}
