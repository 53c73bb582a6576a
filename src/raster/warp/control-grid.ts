/** Positions of the pixels of a destination in a source image: exact at the points of a grid, interpolated between them. */
import type { GridBounds } from '../../grid/index.js';
import { mapToPixel, type PointTransform } from '../crs/crs.js';
import type { Affine, Window } from '../raster.js';

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

/** Squares of a control grid: the pixels between four of its points, `step` x `step`, fewer at the right and lower edges. */

/**
 * Far above the noise of projections and far below real differences, so that a pixel centre on an edge belongs to the
 * right-hand pixel.
 */
export const PIXEL_EPSILON = 1e-10;

/** State of the squares of a grid over a window of pixels, row by row. */
export interface GridSquares {
  /** 1 if each pixel lies between the centres of four pixels of the window, so that the edges need no checks. */
  interior: Uint8Array;
  /** A bit for each row of pixels of a square, from the lowest bit on: the row holds no data. */
  outside: Int32Array;
  /** A bit for each row: the row is not interpolated yet. */
  pending: Int32Array;
  /** Position of the grid points from the centre of the window's first pixel, in integers of 1 / `SUBPIXEL_ONE` pixel. */
  x: Float64Array;
  y: Float64Array;
  /** The pixels of the window that interior squares need. */
  sourceBounds: { left: number; top: number; right: number; bottom: number };
}

/** The WebAssembly kernel counts positions along a row in 2 ** -20 of a source pixel: adding integers is fast. */
export const SUBPIXEL_ONE = 2 ** 20;

/** The longest way across a square, in source pixels, that the kernel can count in 32 bits. */
const MAX_SQUARE_SPAN = 2000;
/** Larger than the rounding of positions. */
const POSITION_TOLERANCE = 0.01;

/** A copy whose `outside` and `pending` the kernels may change. */
export function cloneForWarp(squares: GridSquares): GridSquares {
  return { ...squares, outside: squares.outside.slice(), pending: squares.pending.slice() };
}

/** Rows of squares beyond the window are outside, all others are pending. */
export function prepareSquares(grid: ControlGrid, { column, row, width, height }: Window): GridSquares {
  const { step, columns } = grid;
  const size = (columns - 1) * (grid.rows - 1);
  const interior = new Uint8Array(size);
  const outside = new Int32Array(size);
  const pending = new Int32Array(size);
  const sourceBounds = { left: width, top: height, right: 0, bottom: 0 };
  const across: Span = { low: 0, high: 0 };
  const down: Span = { low: 0, high: 0 };
  for (let j = 0, square = 0; j < grid.rows - 1; j++) {
    const partDown = (Math.min(step, grid.height - j * step) - 1) / step;
    for (let i = 0; i < columns - 1; i++, square++) {
      const partAcross = (Math.min(step, grid.width - i * step) - 1) / step;
      const node = j * columns + i;
      cornerRange(grid.x, node, columns, partAcross, partDown, across);
      cornerRange(grid.y, node, columns, partAcross, partDown, down);
      const left = across.low - column - 0.5;
      const right = across.high - column - 0.5;
      const top = down.low - row - 0.5;
      const bottom = down.high - row - 0.5;
      if (right < -1 || bottom < -1 || left > width || top > height) outside[square] = -1;
      else pending[square] = -1;
      const inside =
        left >= POSITION_TOLERANCE &&
        top >= POSITION_TOLERANCE &&
        right < width - 1 - POSITION_TOLERANCE &&
        bottom < height - 1 - POSITION_TOLERANCE;
      if (!inside || right - left + bottom - top >= MAX_SQUARE_SPAN) continue;
      interior[square] = 1;
      sourceBounds.left = Math.min(sourceBounds.left, Math.floor(left - POSITION_TOLERANCE));
      sourceBounds.top = Math.min(sourceBounds.top, Math.floor(top - POSITION_TOLERANCE));
      sourceBounds.right = Math.max(sourceBounds.right, Math.floor(right + POSITION_TOLERANCE) + 2);
      sourceBounds.bottom = Math.max(sourceBounds.bottom, Math.floor(bottom + POSITION_TOLERANCE) + 2);
    }
  }
  const x = grid.x.map((position) => Math.floor((position - column - 0.5) * SUBPIXEL_ONE + 0.5));
  const y = grid.y.map((position) => Math.floor((position - row - 0.5) * SUBPIXEL_ONE + 0.5));
  return { interior, outside, pending, x, y, sourceBounds };
}

interface Span {
  low: number;
  high: number;
}

/** Writes the lowest and the highest position of a square's four corner pixels to `into`; NaN if a grid point is NaN. */
function cornerRange(
  nodes: Float64Array,
  node: number,
  columns: number,
  across: number,
  down: number,
  into: Span,
): void {
  const start = nodes[node];
  const upper = start + (nodes[node + 1] - start) * across;
  const left = lerpRows(nodes, node, columns, down);
  const right = lerpRows(nodes, node + 1, columns, down);
  const lower = left + (right - left) * across;
  into.low = Math.min(start, upper, left, lower);
  into.high = Math.max(start, upper, left, lower);
}

/** Interpolates between a grid point and the one below it. */
export function lerpRows(nodes: Float64Array, node: number, columns: number, part: number): number {
  const above = nodes[node];
  return above + (nodes[node + columns] - above) * part;
}
