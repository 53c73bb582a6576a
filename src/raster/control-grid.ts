/** Where the pixels of a destination lie in a source image: exact at the nodes of a grid, interpolated between them. */
import type { Bounds } from '../geocode/index.js';
import { mapToPixel } from './affine.js';
import type { Projection } from './crs.js';
import type { Affine } from './types.js';

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
/** The largest error of interpolation, in source pixels: one nearest pixel in some thousands goes to its neighbour. */
const TOLERANCE = 2.5e-4;

/** `project` converts from the destination's system to the source's; `transform` is the position of the source image. */
export function controlGrid(destination: Destination, project: Projection, transform: Affine): ControlGrid {
  const locate = sourceLocator(destination, project, transform);
  for (let step = LARGEST_STEP; ; step /= 2) {
    const grid = gridOf(destination, locate, step);
    if (step === 1 || !(interpolationError(grid, locate) > TOLERANCE)) return grid;
  }
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

/** The largest distance of interpolated from exact positions in the middle of nine squares of the grid. */
function interpolationError({ step, columns, rows, x, y }: ControlGrid, locate: Locator): number {
  const middle = step / 2;
  let worst = 0;
  for (const j of [0, (rows - 2) >> 1, rows - 2]) {
    for (const i of [0, (columns - 2) >> 1, columns - 2]) {
      const node = j * columns + i;
      const mean = (values: Float64Array) =>
        (values[node] + values[node + 1] + values[node + columns] + values[node + columns + 1]) / 4;
      const [u, v] = locate(i * step + middle + 0.5, j * step + middle + 0.5);
      const error = Math.hypot(u - mean(x), v - mean(y));
      // Some nodes have no counterpart in the source, but the middle has: smaller squares lose less of it.
      if (Number.isNaN(error) && !Number.isNaN(u + v)) return Infinity;
      if (error > worst) worst = error;
    }
  }
  return worst;
}
