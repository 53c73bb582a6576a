/** Where the pixels of a destination lie in a source image: exact at the nodes of a grid, interpolated between them. */
import type { Bounds } from '../../geocode/index.js';
import { mapToPixel } from '../affine.js';
import type { Projection } from '../crs/crs.js';
import type { Affine } from '../types.js';

/**
 * Node (i, j) stands for the centre of destination pixel (i * step, j * step). `x` and `y` are its position in the source in
 * pixels: pixel c covers [c, c + 1). Nodes go past the last pixel, so that every pixel lies between four of them. A node
 * without a counterpart in the source is NaN, and then so are the pixels around it.
 */
export interface ControlGrid {
  /** Size of the destination. */
  width: number;
  height: number;
  /** Pixels between nodes: a power of two, 32 where that is exact enough, never more. */
  step: number;
  columns: number;
  rows: number;
  /** Float64: at column 10,000, float32 keeps no more than a thousandth of a pixel. */
  x: Float64Array;
  y: Float64Array;
}

export interface Destination {
  /** In the coordinates of the destination's system. */
  bounds: Bounds;
  width: number;
  height: number;
}

const LARGEST_STEP = 32;
/** The largest error of interpolation, in source pixels: no more than one nearest pixel in two thousand goes to its neighbour. */
const TOLERANCE = 5e-4;

/** `project` converts from the destination's system to the source's; `transform` is the position of the source image. */
export function controlGrid(destination: Destination, project: Projection, transform: Affine): ControlGrid {
  const locate = sourceLocator(destination, project, transform);
  let step = LARGEST_STEP;
  while (step > 1 && interpolationError(destination, locate, step) > TOLERANCE) step /= 2;
  return gridOf(destination, locate, step);
}

/** Source position of the point (column, row) of the destination, in pixels. */
type Locator = (column: number, row: number) => [x: number, y: number];

function sourceLocator(
  { bounds, width, height }: Destination,
  project: Projection,
  transform: Affine,
): Locator {
  const pixelWidth = (bounds.east - bounds.west) / width;
  const pixelHeight = (bounds.north - bounds.south) / height;
  return (column, row) =>
    mapToPixel(transform, ...project(bounds.west + column * pixelWidth, bounds.north - row * pixelHeight));
}

function gridOf({ width, height }: Destination, locate: Locator, step: number): ControlGrid {
  const columns = Math.ceil(width / step) + 1;
  const rows = Math.ceil(height / step) + 1;
  const x = new Float64Array(columns * rows);
  const y = new Float64Array(columns * rows);
  for (let j = 0, node = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++, node++) {
      [x[node], y[node]] = locate(i * step + 0.5, j * step + 0.5) as [number, number];
    }
  }
  return { width, height, step, columns, rows, x, y };
}

/**
 * The part of a grid for rows [from, to) of the destination; `from` is a multiple of 32. It gives its pixels the same positions as the
 * whole, so that a destination can be made piece by piece.
 */
export function rowsOfGrid(
  { width, step, columns, x, y }: ControlGrid,
  from: number,
  to: number,
): ControlGrid {
  const rows = Math.ceil((to - from) / step) + 1;
  const nodes = [(from / step) * columns, (from / step + rows) * columns] as const;
  return { width, height: to - from, step, columns, rows, x: x.subarray(...nodes), y: y.subarray(...nodes) };
}

/** The largest distance of interpolated from exact positions in the middle of nine squares of a grid with this step. */
function interpolationError({ width, height }: Destination, locate: Locator, step: number): number {
  const lastColumn = Math.ceil(width / step) - 1;
  const lastRow = Math.ceil(height / step) - 1;
  let worst = 0;
  for (const j of new Set([0, lastRow >> 1, lastRow])) {
    for (const i of new Set([0, lastColumn >> 1, lastColumn])) {
      const corners = [i, i + 1].flatMap((column) =>
        [j, j + 1].map((row) => locate(column * step + 0.5, row * step + 0.5)),
      );
      const mean = (axis: 0 | 1) => corners.reduce((sum, corner) => sum + corner[axis], 0) / 4;
      const [u, v] = locate((i + 0.5) * step + 0.5, (j + 0.5) * step + 0.5);
      const error = Math.hypot(u - mean(0), v - mean(1));
      // Some nodes have no counterpart in the source, but the middle has: smaller squares lose less of it.
      if (Number.isNaN(error) && !Number.isNaN(u + v)) return Infinity;
      if (error > worst) worst = error;
    }
  }
  return worst;
}
