/** Covers a shape by ranges of geocode keys. */
import { type Bbox, cellBbox, type Grid, grids } from '../../grid/index.js';
import type { CellKeyRange } from '../../storage/index.js';
import { bboxesIntersect, type PreparedGeometry } from './prepared-geometry.js';

/** If more cells are on the edge of a shape, they are not divided further, and their tiles are tested individually. */
const MAX_EDGE_CELLS = 16;

export interface CellCovering {
  /**
   * Keys of cells within the shape; all their tiles touch it. (A larger cell with the key of one of these contains
   * that cell, so it touches the shape as well.)
   */
  inside: CellKeyRange[];
  /** Keys of cells on the edge of the shape; each of their tiles is tested. */
  edge: CellKeyRange[];
}

/** Descends each grid from its largest cells, as long as few cells are on the edge of the shape. */
export function coverGeometry(shape: PreparedGeometry): CellCovering {
  const inside: CellKeyRange[] = [];
  const edge: CellKeyRange[] = [];
  for (const grid of grids) {
    let cells = rootsOf(grid);
    for (let precision = grid.minPrecision; cells.length > 0; precision++) {
      const onEdge: Cell[] = [];
      for (const cell of cells) {
        // A quick test: most cells are far away.
        if (!bboxesIntersect(shape.bbox, cell.bbox)) continue;
        if (shape.covers(cell.bbox)) inside.push(descendantKeys(grid, cell.geocode, cell));
        else if (shape.intersects(cell.bbox)) onEdge.push(cell);
      }
      const descends = onEdge.length <= MAX_EDGE_CELLS && precision < grid.maxPrecision;
      for (const cell of onEdge) edge.push((descends ? cellKey : descendantKeys)(grid, cell.geocode, cell));
      cells = descends ? onEdge.flatMap((cell) => childrenOf(grid, cell)) : [];
    }
  }
  return { inside, edge };
}

type Keys = ReturnType<Grid['key']>;

/** The keys of a cell and of all cells below it. */
export function descendantKeys(grid: Grid, cell: string, { key, span }: Keys = grid.key(cell)): CellKeyRange {
  return { grid: grid.name, from: key, to: key + span };
}

/** The key of a cell. The first cells below it have the same key, but another precision. */
export function cellKey(grid: Grid, cell: string, { key }: Keys = grid.key(cell)): CellKeyRange {
  return { grid: grid.name, from: key, to: key + 1, precision: cell.length };
}

interface Cell extends Keys {
  geocode: string;
  bbox: Bbox;
  children?: Cell[];
}

/** Searches visit the same large cells repeatedly, so cells below `roots` are cached, at most this many. */
const MAX_CACHED_CELLS = 50_000;
const roots = new Map<Grid, Cell[]>();
let cachedCells = 0;

function rootsOf(grid: Grid): Cell[] {
  if (cachedCells > MAX_CACHED_CELLS) {
    roots.clear();
    cachedCells = 0;
  }
  let known = roots.get(grid);
  if (!known) {
    known = grid.cover(grid.extent, grid.minPrecision).map((root) => cellOf(grid, root, grid.key(root)));
    roots.set(grid, known);
  }
  return known;
}

function childrenOf(grid: Grid, cell: Cell): Cell[] {
  if (!cell.children) {
    const geocodes = grid.children(cell.geocode);
    const span = cell.span / geocodes.length;
    cell.children = geocodes.map((child, i) => cellOf(grid, child, { key: cell.key + i * span, span }));
  }
  return cell.children;
}

function cellOf(grid: Grid, geocode: string, { key, span }: Keys): Cell {
  cachedCells++;
  return { geocode, bbox: cellBbox(grid, geocode), key, span };
}
