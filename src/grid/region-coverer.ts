/** Covers a region by cells. The region is given by a function that relates it to rectangles. */
import type { Grid, GridBounds } from './grid.js';

/** Relation of a rectangle to a region. `touching`: certainly overlaps in part; `unclear`: needs smaller rectangles. */
export type Relation = 'outside' | 'touching' | 'inside' | 'unclear';

/** Rectangle (column, row) of the lattice that has 2^level columns and rows in each cell; row 0 in the south. */
interface Rect {
  column: number;
  row: number;
}

/** Maximum number of columns of the first level: rectangles of 45 degrees. */
const INITIAL_COLUMNS = 8;
/** The rectangles of the last level are a thousandth of a cell: 2^5 columns and rows. */
const MAX_LEVEL = 5;

/**
 * Cells that a region touches, row by row from north to south, west to east. The extent is repeatedly halved in both directions:
 * rectangles outside are dropped, rectangles inside are covered entirely, and the others are divided further, so the work
 * is proportional to the region's outline and not to its area. `relate` gets rectangles in grid coordinates; if
 * `closest` is true there is no further level, and `unclear` counts as touching.
 * If there are more than `max` cells, it throws the result of `tooMany`, which gets their approximate number, before it lists them.
 */
export function coverRegionByRelation(
  grid: Grid,
  precision: number,
  relate: (rect: GridBounds, closest: boolean) => Relation,
  max: number,
  tooMany: (cells: number) => Error,
): string[] {
  const lattice = cellLattice(grid, precision);
  const insideRects: { rect: Rect; level: number }[] = [];
  const single = new Set<number>();
  let cells = 0;
  let level = Math.min(0, Math.log2(INITIAL_COLUMNS / lattice.columns));
  let frontier = lattice.rects(level);
  for (; frontier.length > 0; level++) {
    const closest = level === MAX_LEVEL;
    const unclear: Rect[] = [];
    let touched = 0;
    for (const rect of frontier) {
      const key = level < 0 ? undefined : lattice.key(rect, level);
      if (key !== undefined && single.has(key)) continue;
      const relation = relate(lattice.bounds(rect, level), closest);
      if (relation === 'outside') continue;
      if (key === undefined && relation === 'inside') {
        insideRects.push({ rect, level });
        cells += 4 ** -level;
      } else if (key !== undefined && (relation !== 'unclear' || closest)) {
        single.add(key);
        cells++;
      } else {
        unclear.push(rect);
        if (relation === 'touching') touched++;
      }
    }
    // Touched rectangles form the outline, a line: the number of its rectangles about doubles with each level.
    const outline = touched * 2 ** -level;
    const isLong = touched >= INITIAL_COLUMNS ** 2 && cells + outline / 1.25 > max;
    if (cells > max || isLong || (level <= 0 && unclear.length > max))
      throw tooMany(Math.round(cells + Math.max(outline, unclear.length)));
    frontier = unclear.flatMap(splitIntoQuadrants);
  }
  for (const { rect, level } of insideRects)
    for (const key of lattice.keysWithin(rect, level)) single.add(key);
  return [...single].sort((a, b) => a - b).map((key) => lattice.geocode(key));
}

const splitIntoQuadrants = ({ column, row }: Rect): Rect[] =>
  [1, 0].flatMap((y) => [0, 1].map((x) => ({ column: 2 * column + x, row: 2 * row + y })));

/** Rectangles of all levels over the cells of one precision. A cell's key counts cells from the north-west, row by row. */
function cellLattice(grid: Grid, precision: number) {
  const { extent } = grid;
  const { width, height } = grid.cellSize(precision);
  const columns = Math.round((extent.east - extent.west) / width);
  const rows = Math.round((extent.north - extent.south) / height);
  const keyOf = (column: number, row: number) => (rows - 1 - row) * columns + column;
  return {
    columns,

    rects(level: number): Rect[] {
      const across = columns * 2 ** level;
      const down = rows * 2 ** level;
      return Array.from({ length: across * down }, (_, i) => ({
        column: i % across,
        row: Math.floor(i / across),
      }));
    },

    bounds({ column, row }: Rect, level: number): GridBounds {
      const w = width / 2 ** level;
      const h = height / 2 ** level;
      return {
        west: extent.west + column * w,
        south: extent.south + row * h,
        east: extent.west + (column + 1) * w,
        north: extent.south + (row + 1) * h,
      };
    },

    /** The cell that contains a rectangle no larger than a cell. */
    key: ({ column, row }: Rect, level: number) =>
      keyOf(Math.floor(column / 2 ** level), Math.floor(row / 2 ** level)),

    /** The cells within a rectangle larger than a cell. */
    *keysWithin({ column, row }: Rect, level: number): Generator<number> {
      const size = 2 ** -level;
      for (let y = row * size; y < (row + 1) * size; y++) {
        for (let x = column * size; x < (column + 1) * size; x++) yield keyOf(x, y);
      }
    },

    geocode(key: number): string {
      const column = key % columns;
      const row = rows - 1 - Math.floor(key / columns);
      return grid.encode(
        extent.west + (column + 0.5) * width,
        extent.south + (row + 0.5) * height,
        precision,
      );
    },
  };
}
