/** The images and filter taps that a convolution consists of in Winograd's method, and the transforms of its tiles. */
import { PANEL_WIDTH } from './gemm.js';
import { type Exports, FLOAT32_BYTES, type WasmHeap } from './heap.js';
import type { ConvolutionShape } from './im2col.js';

/**
 * With fewer outputs, transforming a 4 x 4 filter, whose points are four times as large, costs more than the multiplications that it
 * saves.
 */
const MIN_OUTPUTS_4X4 = 256;

export interface Method {
  /** Outputs of a tile, taps, and multiplications, in one dimension. */
  tile: number;
  taps: number;
  side: number;
  transforms: Record<'input' | 'filter' | 'output' | 'gradient' | 'taps', keyof Exports>;
}

const methodOf = (tile: number, taps: number, side: 4 | 6): Method => ({
  tile,
  taps,
  side,
  transforms: {
    input: `inputPoints${side}`,
    filter: `filterPoints${side}`,
    output: `outputPixels${side}`,
    gradient: `gradientPoints${side}`,
    taps: `filterPixels${side}`,
  },
});
const OF_3X3 = methodOf(4, 3, 6);
const OF_2X2 = methodOf(3, 2, 4);

/** Pixels on the heap. Strides are in bytes. The first pixel is at row `top` and column `left` of the tiles. */
export interface Image {
  address: number;
  height: number;
  width: number;
  channels: number;
  pixel: number;
  row: number;
  image: number;
  top: number;
  left: number;
}

/** A convolution with stride 1 without dilation. The channels of several inputs, or outputs, are concatenated. */
export interface Convolved {
  batch: number;
  inputs: Image[];
  outputs: Image[];
}

/** Every n-th tap of a filter [height, width, inputs, outputs]: address of the first, and bytes between taps. */
export interface Taps {
  address: number;
  row: number;
  pixel: number;
}

/** Plan of a convolution. */
interface Plan {
  method: Method;
  convolutions: Convolved[];
  filters: (address: number) => Taps[];
}

/** True if `planOf` supports it. */
export function isWinograd(s: ConvolutionShape): boolean {
  if (s.channels % PANEL_WIDTH !== 0 || s.outputs % PANEL_WIDTH !== 0) return false;
  return is3x3(s) || is4x4(s);
}

function is3x3({ filter, stride, dilation, top, left }: ConvolutionShape): boolean {
  const [distance] = dilation;
  const isDivided = distance === dilation[1] && top % distance === 0 && left % distance === 0;
  return isDivided && filter.every((taps) => taps === 3) && stride.every((step) => step === 1);
}

function is4x4({ filter, stride, dilation, rows, columns }: ConvolutionShape): boolean {
  const isHalved = filter.every((taps) => taps === 4) && stride.every((step) => step === 2);
  return isHalved && dilation.every((distance) => distance === 1) && rows * columns >= MIN_OUTPUTS_4X4;
}

export function planOf(s: ConvolutionShape, x: number, y: number): Plan {
  const size = s.channels * s.outputs * FLOAT32_BYTES;
  const ofX = { address: x, height: s.height, width: s.width, channels: s.channels };
  const ofY = { address: y, height: s.rows, width: s.columns, channels: s.outputs };
  if (is3x3(s)) {
    const [n] = s.dilation;
    return {
      method: OF_3X3,
      convolutions: pairsBelow(n).map((at) => ({
        batch: s.batch,
        inputs: [everyNth(ofX, n, at, [s.top / n, s.left / n])],
        outputs: [everyNth(ofY, n, at, [0, 0])],
      })),
      filters: (address) => [{ address, row: 3 * size, pixel: size }],
    };
  }
  const inputs = pairsBelow(2).map((at) => {
    // First pixel for which 2 n + at - pad is inside the image.
    const first = [s.top, s.left].map((pad, axis) => Math.max(0, Math.ceil((pad - at[axis]) / 2)));
    const pixel = [s.top, s.left].map((pad, axis) => 2 * first[axis] + at[axis] - pad);
    return everyNth(ofX, 2, pixel, first);
  });
  return {
    method: OF_2X2,
    convolutions: [{ batch: s.batch, inputs, outputs: [everyNth(ofY, 1, [0, 0], [0, 0])] }],
    filters: (address) =>
      pairsBelow(2).map(([i, j]) => ({
        address: address + (4 * i + j) * size,
        row: 8 * size,
        pixel: 2 * size,
      })),
  };
}

const pairsBelow = (n: number) => Array.from({ length: n * n }, (_, i) => [Math.floor(i / n), i % n]);

/** Returns every n-th pixel of an image from a start pixel on. */
function everyNth(
  of: Pick<Image, 'address' | 'height' | 'width' | 'channels'>,
  n: number,
  [row, column]: number[],
  [top, left]: number[],
): Image {
  const pixel = of.channels * FLOAT32_BYTES;
  return {
    address: of.address + (row * of.width + column) * pixel,
    height: Math.max(0, Math.ceil((of.height - row) / n)),
    width: Math.max(0, Math.ceil((of.width - column) / n)),
    channels: of.channels,
    pixel: n * pixel,
    row: n * of.width * pixel,
    image: of.height * of.width * pixel,
    top,
    left,
  };
}

/** Channels of a vector. */
export const VECTOR = 4;

/** Location of the points of tiles, in bytes: address, and distances between points, tiles and pairs of channel groups. */
interface Points {
  address: number;
  step: number;
  tile: number;
  pair: number;
}

/** Consecutive tiles of a row: index of the first one in its block, and its position in its image. */
interface Run {
  at: number;
  count: number;
  image: number;
  row: number;
  column: number;
}

export function transform(
  heap: WasmHeap,
  { tile, transforms }: Method,
  name: keyof Method['transforms'],
  { address, row, pixel, image, channels, height, width, top, left }: Image,
  run: Run,
  points: Points,
  ...more: number[]
): void {
  const [y, x] = [tile * run.row - top, tile * run.column - left];
  heap.run[transforms[name]](
    run.count,
    channels / VECTOR,
    address + run.image * image + y * row + x * pixel,
    row,
    pixel,
    tile * pixel,
    y,
    x,
    height,
    width,
    tile,
    points.address + run.at * points.tile,
    points.step,
    points.tile,
    points.pair,
    ...more,
  );
}

/** Returns the numbers of rows and columns of tiles that cover all outputs. */
function tilesOf({ tile }: Method, { outputs }: Convolved): [number, number] {
  const most = (size: (of: Image) => number) => Math.ceil(Math.max(...outputs.map(size)) / tile);
  return [most(({ top, height }) => top + height), most(({ left, width }) => left + width)];
}

export function eachBlock(
  method: Method,
  part: Convolved,
  block: number,
  visit: (first: number, count: number) => void,
): void {
  const [rows, columns] = tilesOf(method, part);
  const all = part.batch * rows * columns;
  for (let first = 0; first < all; first += block) visit(first, Math.min(block, all - first));
}

export function eachRun(
  method: Method,
  part: Convolved,
  first: number,
  count: number,
  visit: (run: Run) => void,
): void {
  const [rows, columns] = tilesOf(method, part);
  for (let at = 0; at < count; ) {
    const line = Math.floor((first + at) / columns);
    const column = (first + at) % columns;
    const length = Math.min(count - at, columns - column);
    visit({ at, count: length, image: Math.floor(line / rows), row: line % rows, column });
    at += length;
  }
}
