/** Which cells an area needs. */
import type { Bbox, Grid, GridBounds } from './grid.js';

type Point = readonly [x: number, y: number];

/** Bounds of a cell in degrees. Cells never cross the antimeridian. */
export function cellBbox(grid: Grid, geocode: string): Bbox {
  const { west, south, east, north } = grid.bounds(geocode);
  return [...grid.toLonLat(west, south), ...grid.toLonLat(east, north)];
}

/** A cell counts as covered where the polygon takes at least this share of it; less is rounding along an edge. */
const MIN_AREA_RATIO = 1e-12;

/**
 * Cells whose interior overlaps a simple polygon, given as one ring in grid coordinates (closed or not, either
 * direction), row by row from north to south, west to east. A ring across the antimeridian runs on beyond the extent;
 * what lies there is taken on the other side.
 */
export function coverPolygon(grid: Grid, ring: readonly Point[], precision: number): string[] {
  const { west, east } = grid.extent;
  const box = boundsOf(ring);
  const turns = [0];
  if (box.west < west) turns.push(east - west);
  if (box.east > east) turns.push(west - east);
  const geocodes = turns.flatMap((turn) =>
    coverWithinExtent(grid, turn === 0 ? ring : ring.map(([x, y]) => [x + turn, y] as const), precision),
  );
  return turns.length === 1 ? geocodes : [...new Set(geocodes)];
}

/** Cuts the ring into rows of cells and each row into cells, and keeps the cells in which an area is left. */
function coverWithinExtent(grid: Grid, ring: readonly Point[], precision: number): string[] {
  const { width, height } = grid.cellSize(precision);
  const minArea = width * height * MIN_AREA_RATIO;
  const box = boundsOf(ring);
  const column = { ...box, east: box.west };
  return grid
    .cover(clampTo(grid.extent, column), precision)
    .map((geocode) => grid.bounds(geocode))
    .flatMap(({ south, north }) => {
      const row = clip(clip(ring, 1, south, 1), 1, north, -1);
      if (row.length === 0) return [];
      const middle = (south + north) / 2;
      const { west, east } = boundsOf(row);
      return grid.cover({ west, south: middle, east, north: middle }, precision).filter((geocode) => {
        const cell = grid.bounds(geocode);
        const piece = clip(clip(row, 0, cell.west, 1), 0, cell.east, -1);
        return area(piece, cell.west, cell.south) > minArea;
      });
    });
}

/** A line of no width at the western end of the ring still has to lie on the grid to find its rows. */
function clampTo(extent: GridBounds, bounds: GridBounds): GridBounds {
  const clamp = (x: number) => Math.min(Math.max(x, extent.west), extent.east);
  return { ...bounds, west: clamp(bounds.west), east: clamp(bounds.east) };
}

function boundsOf(ring: readonly Point[]): GridBounds {
  const box = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  for (const [x, y] of ring) {
    box.west = Math.min(box.west, x);
    box.south = Math.min(box.south, y);
    box.east = Math.max(box.east, x);
    box.north = Math.max(box.north, y);
  }
  return box;
}

/**
 * The part of a ring on one side of an axis-parallel line (one step of Sutherland and Hodgman, "Reentrant polygon
 * clipping", 1974). Parts of a concave ring stay joined along the line, which leaves their area as it is.
 */
function clip(ring: readonly Point[], axis: 0 | 1, line: number, sign: 1 | -1): Point[] {
  const kept: Point[] = [];
  let previous = ring.at(-1);
  for (const point of ring) {
    if (previous) {
      const before = sign * (previous[axis] - line);
      const now = sign * (point[axis] - line);
      if ((before < 0 && now > 0) || (before > 0 && now < 0))
        kept.push(crossing(previous, point, axis, line));
      if (now >= 0) kept.push(point);
    }
    previous = point;
  }
  return kept;
}

function crossing(from: Point, to: Point, axis: 0 | 1, line: number): Point {
  const other = axis === 0 ? 1 : 0;
  const share = (line - from[axis]) / (to[axis] - from[axis]);
  const value = from[other] + share * (to[other] - from[other]);
  return axis === 0 ? [line, value] : [value, line];
}

/** Area of a ring by the shoelace formula, relative to a point near it to keep the digits. */
function area(ring: readonly Point[], x0: number, y0: number): number {
  let twice = 0;
  let previous = ring.at(-1);
  for (const point of ring) {
    if (previous) twice += (previous[0] - x0) * (point[1] - y0) - (point[0] - x0) * (previous[1] - y0);
    previous = point;
  }
  return Math.abs(twice) / 2;
}
