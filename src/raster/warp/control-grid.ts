/** Positions of the pixels of a destination in a source image: exact at the points of a grid, interpolated between them. */
import type { GridBounds } from '../../grid/index.js';
import { mapToPixel, type PointTransform } from '../crs/crs.js';
import type { Affine } from '../raster.js';

/**
 * Grid point (i, j) is the centre of destination pixel (i * step, j * step). `x` and `y` are its position in the source in
 * pixels: pixel c covers [c, c + 1). The grid extends beyond the last pixel, so that every pixel lies between four points. A
 * point without a counterpart in the source is NaN, and so are the pixels around it. If the step is 1, it is `OFF_MAP`
 * instead, and only its own pixel has no counterpart.
 */
export interface ControlGrid {
  /** Size of the destination. */
  width: number;
  height: number;
  /** Pixels between grid points: a power of two, at most 32, the largest that is exact enough. */
  step: number;
  columns: number;
  rows: number;
  /** Float64: at column 10,000, float32 resolves only a thousandth of a pixel. */
  x: Float64Array;
  y: Float64Array;
}

/**
 * Far from every image, but a number: a pixel at the edge of a map is interpolated between its own point and this one with a
 * weight of 0.
 */
export const OFF_MAP = -1e15;

export interface WarpTarget {
  /** In the coordinates of the destination's system. */
  bounds: GridBounds;
  width: number;
  height: number;
}

/** Steps to try, in pixels, if one step is exact enough for the entire grid. */
const UNIFORM_STEPS = [32, 16, 8];
const MAX_STEP = 32;
/**
 * The largest error of interpolation, in source pixels. At most one nearest pixel in two thousand is then a wrong neighbour.
 */
const MAX_ERROR_PIXELS = 5e-4;
/**
 * Limit of the second difference of grid points, in source pixels. The error of interpolation is an eighth of it. The limit
 * allows four times the tolerance, because most squares lie between tested ones.
 */
const MAX_SECOND_DIFFERENCE = 8 * 4 * MAX_ERROR_PIXELS;

/**
 * `project` converts from the destination's system to the source's; `transform` is the georeferencing of the source image. If
 * the size of the image is given, pixels beyond it may be positioned less exactly, but never inside it.
 */
export function buildControlGrid(
  destination: WarpTarget,
  project: PointTransform,
  transform: Affine,
  source?: ImageSize,
): ControlGrid {
  const locate = targetToSourceTransform(destination, project, transform);
  const step = UNIFORM_STEPS.find((one) => isExact(destination, locate, one));
  const grid = sampleGrid(destination, locate, step ?? MAX_STEP);
  return step !== undefined && hasNoGaps(grid) && isSmooth(grid) ? grid : subdivide(grid, locate, source);
}

/** In pixels. */
interface ImageSize {
  width: number;
  height: number;
}

/** Source position of the point (column, row) of the destination, in pixels. */
type Locator = (column: number, row: number) => [x: number, y: number];

function targetToSourceTransform(
  { bounds, width, height }: WarpTarget,
  project: PointTransform,
  transform: Affine,
): Locator {
  const pixelWidth = (bounds.east - bounds.west) / width;
  const pixelHeight = (bounds.north - bounds.south) / height;
  return (column, row) =>
    mapToPixel(transform, ...project(bounds.west + column * pixelWidth, bounds.north - row * pixelHeight));
}

function sampleGrid({ width, height }: WarpTarget, locate: Locator, step: number): ControlGrid {
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
 * The part of a grid for rows [from, to) of the destination; `from` is a multiple of 32. Pixels have the same positions as in
 * the complete grid, so that a destination can be made in parts.
 */
export function sliceRows(
  { width, step, columns, x, y }: ControlGrid,
  from: number,
  to: number,
): ControlGrid {
  const rows = Math.ceil((to - from) / step) + 1;
  const nodes = [(from / step) * columns, (from / step + rows) * columns] as const;
  return { width, height: to - from, step, columns, rows, x: x.subarray(...nodes), y: y.subarray(...nodes) };
}

/** True if all grid points have a counterpart in the source. */
function hasNoGaps({ x, y }: ControlGrid): boolean {
  return x.every((position, node) => !Number.isNaN(position + y[node]!));
}

/**
 * True if the distances between grid points change everywhere as little as in the squares that `isExact` tests. They jump at a
 * seam of the source, where x continues from the other end of the map.
 */
function isSmooth({ columns, rows, x, y }: ControlGrid): boolean {
  const bends = (nodes: Float64Array, node: number, next: number) =>
    Math.abs(nodes[node - next]! - 2 * nodes[node]! + nodes[node + next]!) > MAX_SECOND_DIFFERENCE;
  for (let j = 0, node = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++, node++) {
      if (i > 0 && i < columns - 1 && (bends(x, node, 1) || bends(y, node, 1))) return false;
      if (j > 0 && j < rows - 1 && (bends(x, node, columns) || bends(y, node, columns))) return false;
    }
  }
  return true;
}

type Position = readonly [x: number, y: number];

/** Positions of the four corners of a square: upper left, upper right, lower left, lower right. */
type Corners = readonly [Position, Position, Position, Position];

/** Positions of the middle of a square, and of the middles of its upper, left, right and lower side. */
type Middles = readonly [Position, Position, Position, Position, Position];

function middlesOf(column: number, row: number, size: number, locate: Locator): Middles {
  const at = (across: number, down: number) =>
    locate(column + across * size + 0.5, row + down * size + 0.5) as Position;
  return [at(0.5, 0.5), at(0.5, 0), at(0, 0.5), at(1, 0.5), at(0.5, 1)];
}

/**
 * The largest distance of the middles from their interpolated positions; NaN if one of the points has no counterpart. The
 * sides count as well: between two conformal projections, the errors along columns and along rows cancel out in the middle.
 */
function interpolationError(corners: Corners, middles: Middles): number {
  let worst = 0;
  for (const axis of [0, 1] as const) {
    const [a, b, c, d] = corners.map((corner) => corner[axis]);
    const means = [(a + b + c + d) / 4, (a + b) / 2, (a + c) / 2, (b + d) / 2, (c + d) / 2];
    worst = Math.max(worst, ...means.map((mean, i) => Math.abs(middles[i]![axis] - mean)));
  }
  return worst;
}

/** True if interpolation is exact enough in nine squares of a grid with this step. */
function isExact({ width, height }: WarpTarget, locate: Locator, step: number): boolean {
  const lastColumn = Math.ceil(width / step) - 1;
  const lastRow = Math.ceil(height / step) - 1;
  return [0, lastRow >> 1, lastRow].every((j) =>
    [0, lastColumn >> 1, lastColumn].every((i) => {
      const at = (column: number, row: number) => locate(column * step + 0.5, row * step + 0.5) as Position;
      const corners = [at(i, j), at(i + 1, j), at(i, j + 1), at(i + 1, j + 1)] as const;
      return interpolationError(corners, middlesOf(i * step, j * step, step, locate)) <= MAX_ERROR_PIXELS;
    }),
  );
}

/** A square of the destination in which interpolation between its corners is exact enough. */
interface Leaf {
  column: number;
  row: number;
  size: number;
  corners: Corners;
}

/**
 * The grid with the largest step that is exact enough everywhere. Divides only squares that need it (at a pole, at the edge of
 * a map), and again only those of their quarters that need it. The points within undivided squares are interpolated.
 */
function subdivide(coarse: ControlGrid, locate: Locator, source: ImageSize | undefined): ControlGrid {
  const { width, height } = coarse;
  const leaves: Leaf[] = [];
  const beyond: Leaf[] = [];
  let pointAt: Locator = locate;
  const divide = (leaf: Leaf): void => {
    const { column, row, size, corners } = leaf;
    if (column >= width || row >= height) return;
    const middles = size === 1 ? undefined : middlesOf(column, row, size, pointAt);
    if (!middles || interpolationError(corners, middles) <= MAX_ERROR_PIXELS) {
      leaves.push(leaf);
      return;
    }
    const points = [...corners, ...middles];
    if (isBeyond(points, source)) {
      beyond.push(leaf);
      return;
    }
    if (size < coarse.step && points.every(isUnplaced)) return;
    const half = size / 2;
    const [a, b, c, d] = corners;
    const [middle, top, left, right, bottom] = middles;
    const quarter = (i: number, j: number, corners: Corners) =>
      divide({ column: column + i, row: row + j, size: half, corners });
    quarter(0, 0, [a, top, left, middle]);
    quarter(half, 0, [top, b, middle, right]);
    quarter(0, half, [left, middle, c, bottom]);
    quarter(half, half, [middle, right, bottom, d]);
  };
  for (let j = 0; j < coarse.rows - 1; j++)
    for (let i = 0; i < coarse.columns - 1; i++) {
      const column = i * coarse.step;
      const row = j * coarse.step;
      pointAt = cachedLocator(locate, column, row, coarse.step);
      divide({ column, row, size: coarse.step, corners: cornersOf(coarse, i, j) });
    }
  // The points on a common side are those of the square that is exact.
  return gridOfLeaves(coarse, [...beyond, ...leaves]);
}

/** Quarters share the points on their sides, so each point of a square is projected once. */
function cachedLocator(locate: Locator, left: number, top: number, size: number): Locator {
  const found = new Array<[x: number, y: number] | undefined>((size + 1) ** 2);
  return (column, row) =>
    (found[(row - top - 0.5) * (size + 1) + column - left - 0.5] ??= locate(column, row));
}

function cornersOf({ columns, x, y }: ControlGrid, i: number, j: number): Corners {
  const at = (node: number): Position => [x[node]!, y[node]!];
  const node = j * columns + i;
  return [at(node), at(node + 1), at(node + columns), at(node + columns + 1)];
}

const isUnplaced = ([x, y]: Position) => Number.isNaN(x + y);

/** True if a square lies beyond an image by more than half of its own extent; false if one of its points has no counterpart. */
function isBeyond(points: Position[], image: ImageSize | undefined): boolean {
  if (!image || points.some(isUnplaced)) return false;
  return ([0, 1] as const).some((axis) => {
    const positions = points.map((point) => point[axis]);
    const low = Math.min(...positions);
    const high = Math.max(...positions);
    const margin = (high - low) / 2 + 1;
    return high + margin < 0 || low - margin > (axis === 0 ? image.width : image.height);
  });
}

function gridOfLeaves({ width, height }: ControlGrid, leaves: Leaf[]): ControlGrid {
  const step = leaves.reduce((smallest, { size }) => Math.min(smallest, size), MAX_STEP);
  const columns = Math.ceil(width / step) + 1;
  const rows = Math.ceil(height / step) + 1;
  const x = new Float64Array(columns * rows).fill(step === 1 ? OFF_MAP : NaN);
  const y = new Float64Array(columns * rows).fill(step === 1 ? OFF_MAP : NaN);
  for (const { column, row, size, corners } of leaves) {
    const [a, b, c, d] = corners;
    if (isUnplaced(a)) continue;
    const nodes = size / step;
    // A point belongs to several squares. A square of one pixel does not write its right and lower side, which belong to its
    // neighbours.
    const last = size === 1 ? 0 : nodes;
    const lastRow = Math.min(last, rows - 1 - row / step);
    const lastColumn = Math.min(last, columns - 1 - column / step);
    for (let j = 0; j <= lastRow; j++) {
      const down = j / nodes;
      const startX = lerp(a[0], c[0], down);
      const startY = lerp(a[1], c[1], down);
      const endX = lerp(b[0], d[0], down);
      const endY = lerp(b[1], d[1], down);
      const first = (row / step + j) * columns + column / step;
      for (let i = 0; i <= lastColumn; i++) {
        x[first + i] = lerp(startX, endX, i / nodes);
        y[first + i] = lerp(startY, endY, i / nodes);
      }
    }
  }
  return { width, height, step, columns, rows, x, y };
}

/** Ignores a corner that has no weight, because it may be NaN. */
export function lerp(a: number, b: number, part: number): number {
  return part === 0 ? a : a + (b - a) * part;
}
