/** Projects a rectangle of the grid into the pixels of a raster. */
import type { GridBounds } from '../../grid/index.js';
import type { PointTransform } from '../../raster/index.js';

export interface ProjectedRectangle {
  /** Positions of nine points of the rectangle, as (column, row) in the raster; points without a counterpart are left out. */
  points: [column: number, row: number][];
  left: number;
  top: number;
  right: number;
  bottom: number;
  /**
   * The largest second differences of column and row between three points in a line. A parabola through the points exceeds
   * their range by at most an eighth of this. Infinite if a point has no counterpart.
   */
  curvature: { x: number; y: number };
}

/** Points next to the edges: on the edge of the map a projection may return either side. */
const SAMPLE_POSITIONS = [1e-9, 0.5, 1 - 1e-9];
/** The three rows, three columns and two diagonals of the nine points. */
const SAMPLE_LINES = [
  [0, 1, 2],
  [3, 4, 5],
  [6, 7, 8],
  [0, 3, 6],
  [1, 4, 7],
  [2, 5, 8],
  [0, 4, 8],
  [2, 4, 6],
];

/** `locate` converts from grid coordinates to (column, row). */
export function projectRectangle(
  { west, south, east, north }: GridBounds,
  locate: PointTransform,
): ProjectedRectangle {
  const all: [column: number, row: number][] = [];
  const points: ProjectedRectangle['points'] = [];
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const v of SAMPLE_POSITIONS) {
    for (const u of SAMPLE_POSITIONS) {
      const point = locate(west + (east - west) * u, south + (north - south) * v);
      const [column, row] = point;
      all.push(point);
      if (!(Number.isFinite(column) && Number.isFinite(row))) continue;
      points.push(point);
      if (column < box.left) box.left = column;
      if (column > box.right) box.right = column;
      if (row < box.top) box.top = row;
      if (row > box.bottom) box.bottom = row;
    }
  }
  return { points, ...box, curvature: { x: maxSecondDifference(all, 0), y: maxSecondDifference(all, 1) } };
}

function maxSecondDifference(points: [number, number][], axis: 0 | 1): number {
  let worst = 0;
  for (const [a, b, c] of SAMPLE_LINES) {
    const bend = Math.abs(points[a][axis] - 2 * points[b][axis] + points[c][axis]);
    if (!(bend <= worst)) worst = Number.isNaN(bend) ? Infinity : bend;
  }
  return worst;
}

/** The four quarters of a rectangle. */
export function splitIntoQuadrants({ west, south, east, north }: GridBounds): GridBounds[] {
  const x = (west + east) / 2;
  const y = (south + north) / 2;
  return [
    { west, south: y, east: x, north },
    { west: x, south: y, east, north },
    { west, south, east: x, north: y },
    { west: x, south, east, north: y },
  ];
}
