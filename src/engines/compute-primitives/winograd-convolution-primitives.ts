/**
 * Convolutions by Winograd's method, whose matrices are in tools/wat/winograd.ts: a tile of 4 x 4 outputs of a 3 x 3 filter takes 36
 * multiplications for each pair of channels instead of 144. Filters of 4 x 4 with stride 2 are filters of 2 x 2 on four images of every
 * second row and column; tiles of 3 x 3 outputs take 16 multiplications instead of 36.
 */

import { PANEL_ROWS, PANEL_WIDTH } from './gemm-primitives.js';
import type { ConvolutionShape } from './im2col-convolution-primitives.js';
import { type Exports, FLOAT32_BYTES, roundUpTo, type WasmHeap } from './wasm-primitives-heap.js';

/** Channels of a vector. */
const VECTOR = 4;
const PANEL_BYTES = PANEL_WIDTH * FLOAT32_BYTES;
/** Floats of a block of tiles, which should fit into the second-level cache. */
const BLOCK_FLOATS = 2 ** 17;
const MAX_TILES = 192;
/** Minimum number of tiles whose gradients are summed in one block: each block reads and writes all sums. */
const MIN_TILES_SUMMED = 64;
/**
 * With fewer outputs, transforming a 4 x 4 filter, whose points are four times as large, costs more than the multiplications that it
 * saves.
 */
const MIN_OUTPUTS_4X4 = 256;

interface Method {
  /** Outputs of a tile, taps, and multiplications, in one dimension. */
  tile: number;
  taps: number;
  side: number;
  transforms: Record<'input' | 'filter' | 'output' | 'gradient' | 'taps', keyof Exports>;
}

const OF_3X3: Method = {
  tile: 4,
  taps: 3,
  side: 6,
  transforms: {
    input: 'inputPoints6',
    filter: 'filterPoints6',
    output: 'outputPixels6',
    gradient: 'gradientPoints6',
    taps: 'filterPixels6',
  },
};
const OF_2X2: Method = {
  tile: 3,
  taps: 2,
  side: 4,
  transforms: {
    input: 'inputPoints4',
    filter: 'filterPoints4',
    output: 'outputPixels4',
    gradient: 'gradientPoints4',
    taps: 'filterPixels4',
  },
};

/** Pixels on the heap. Strides are in bytes. The first pixel is at row `top` and column `left` of the tiles. */
interface Image {
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
interface Convolved {
  batch: number;
  inputs: Image[];
  outputs: Image[];
}

/** Every n-th tap of a filter [height, width, inputs, outputs]: address of the first, and bytes between taps. */
interface Taps {
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

function planOf(s: ConvolutionShape, x: number, y: number): Plan {
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

export function forward(
  heap: WasmHeap,
  s: ConvolutionShape,
  x: number,
  filter: number,
  y: number,
  bias = 0,
): void {
  const { method, convolutions, filters } = planOf(s, x, y);
  const k = convolutions[0].inputs.length * s.channels;
  const work = reserveScratch(heap, method, k, s.outputs);
  for (const [i, taps] of filters(filter).entries())
    toFilterPoints(
      heap,
      method,
      taps,
      { inputs: s.channels, outputs: s.outputs, k },
      work.points + i * s.channels * PANEL_BYTES,
    );
  for (const one of convolutions) convolve(heap, method, one, work, bias);
}

/** Convolves the gradients with the filter rotated by 180 degrees, with inputs and outputs swapped. */
export function inputGradient(
  heap: WasmHeap,
  s: ConvolutionShape,
  dx: number,
  filter: number,
  dy: number,
): void {
  const { method, convolutions, filters } = planOf(s, dx, dy);
  const { taps } = method;
  const size = s.channels * s.outputs;
  const n = convolutions[0].inputs.length * s.channels;
  const work = reserveScratch(heap, method, s.outputs, n, taps ** 2 * size);
  for (const [i, { address, row, pixel }] of filters(filter).entries()) {
    for (let tap = 0; tap < taps ** 2; tap++) {
      const [y, x] = [taps - 1 - Math.floor(tap / taps), taps - 1 - (tap % taps)];
      const to = work.more + tap * size * FLOAT32_BYTES;
      const from = address + y * row + x * pixel;
      heap.run.copyStrided(
        s.outputs,
        s.channels,
        from,
        FLOAT32_BYTES,
        s.outputs * FLOAT32_BYTES,
        to,
        s.channels * FLOAT32_BYTES,
      );
    }
    const turned = { address: work.more, row: taps * size * FLOAT32_BYTES, pixel: size * FLOAT32_BYTES };
    const sizes = { inputs: s.outputs, outputs: s.channels, k: s.outputs, n };
    toFilterPoints(heap, method, turned, sizes, work.points + i * s.channels * s.outputs * FLOAT32_BYTES);
  }
  for (const { batch, inputs, outputs } of convolutions) {
    const gradients = outputs.map((one) => ({ ...one, top: taps - 1, left: taps - 1 }));
    convolve(heap, method, { batch, inputs: gradients, outputs: inputs }, work, 0);
  }
}

/** Convolves the input with the gradients, and sums the tiles before the inverse transform. */
export function filterGradient(heap: WasmHeap, s: ConvolutionShape, x: number, dw: number, dy: number): void {
  const { method, convolutions, filters } = planOf(s, x, dy);
  const { channels, outputs } = s;
  const k = convolutions[0].inputs.length * channels;
  const count = method.side ** 2;
  const block = blockOf(method, k + outputs, MIN_TILES_SUMMED);
  const [sums, inputs, gradients] = heap.scratch(
    count * k * outputs,
    count * block * k,
    count * block * outputs,
  );
  heap.float32View(sums, count * k * outputs).fill(0);
  // Panels of eight channels, which the products read without gaps.
  const panels = (address: number, all: number) => ({
    address,
    step: block * all * FLOAT32_BYTES,
    tile: PANEL_BYTES,
    pair: block * PANEL_BYTES,
  });
  for (const part of convolutions)
    eachBlock(method, part, block, (first, tiles) => {
      eachRun(method, part, first, tiles, (run) => {
        for (const [i, image] of part.inputs.entries())
          transform(
            heap,
            method,
            'input',
            image,
            run,
            panels(inputs + i * channels * block * FLOAT32_BYTES, k),
          );
        transform(heap, method, 'gradient', part.outputs[0], run, panels(gradients, outputs));
      });
      for (let c = 0; c < k; c += PANEL_WIDTH)
        heap.run.multiplyPoints(
          count,
          outputs / PANEL_WIDTH,
          PANEL_WIDTH,
          tiles,
          inputs + c * block * FLOAT32_BYTES,
          FLOAT32_BYTES,
          PANEL_BYTES,
          PANEL_ROWS * FLOAT32_BYTES,
          block * k * FLOAT32_BYTES,
          gradients,
          block * PANEL_BYTES,
          sums + c * outputs * FLOAT32_BYTES,
          outputs * FLOAT32_BYTES,
          k * outputs * FLOAT32_BYTES,
          0,
        );
    });
  for (const [i, { address, row, pixel }] of filters(dw).entries())
    heap.run[method.transforms.taps](
      channels,
      outputs / VECTOR,
      address,
      row,
      pixel,
      outputs * FLOAT32_BYTES,
      0,
      0,
      method.taps,
      method.taps,
      0,
      sums + i * channels * outputs * FLOAT32_BYTES,
      k * outputs * FLOAT32_BYTES,
      outputs * FLOAT32_BYTES,
      PANEL_BYTES,
      0,
    );
}

/** Scratch regions: transformed filter, zeros, transformed inputs and outputs of a block, and additional memory. */
interface ScratchRegions {
  k: number;
  n: number;
  block: number;
  points: number;
  zeros: number;
  inputs: number;
  outputs: number;
  more: number;
}

function reserveScratch(heap: WasmHeap, method: Method, k: number, n: number, floats = 0): ScratchRegions {
  const count = method.side ** 2;
  const block = blockOf(method, k + n, PANEL_ROWS);
  const [points, zeros, inputs, outputs, more] = heap.scratch(
    count * k * n,
    PANEL_WIDTH,
    count * block * k,
    count * block * n,
    floats,
  );
  heap.float32View(zeros, PANEL_WIDTH).fill(0);
  return { k, n, block, points, zeros, inputs, outputs, more };
}

function blockOf({ side }: Method, channels: number, least: number): number {
  const tiles = BLOCK_FLOATS / (side ** 2 * channels);
  return Math.max(least, Math.min(MAX_TILES, Math.floor(tiles / PANEL_ROWS) * PANEL_ROWS));
}

/** Transforms some of the k inputs and n outputs of a filter, in panels of eight outputs. */
function toFilterPoints(
  { run }: WasmHeap,
  { taps, transforms }: Method,
  { address, row, pixel }: Taps,
  { inputs, outputs, k, n = outputs }: { inputs: number; outputs: number; k: number; n?: number },
  points: number,
): void {
  for (let first = 0; first < outputs; first += PANEL_WIDTH)
    run[transforms.filter](
      inputs,
      PANEL_WIDTH / VECTOR,
      address + first * FLOAT32_BYTES,
      row,
      pixel,
      outputs * FLOAT32_BYTES,
      0,
      0,
      taps,
      taps,
      0,
      points + first * k * FLOAT32_BYTES,
      k * n * FLOAT32_BYTES,
      PANEL_BYTES,
      0,
    );
}

function convolve(
  heap: WasmHeap,
  method: Method,
  given: Convolved,
  work: ScratchRegions,
  bias: number,
): void {
  const { k, n, block } = work;
  const part = fromFirstOutput(given);
  const rows = (address: number, all: number) => ({
    address,
    step: block * all * FLOAT32_BYTES,
    tile: all * FLOAT32_BYTES,
    pair: PANEL_BYTES,
  });
  const offset = (images: Image[], i: number) => i * images[0].channels * FLOAT32_BYTES;
  eachBlock(method, part, block, (first, tiles) => {
    eachRun(method, part, first, tiles, (run) => {
      for (const [i, image] of part.inputs.entries())
        transform(heap, method, 'input', image, run, rows(work.inputs + offset(part.inputs, i), k));
    });
    heap.run.multiplyPoints(
      method.side ** 2,
      n / PANEL_WIDTH,
      roundUpTo(PANEL_ROWS, tiles),
      k,
      work.inputs,
      k * FLOAT32_BYTES,
      FLOAT32_BYTES,
      PANEL_ROWS * k * FLOAT32_BYTES,
      block * k * FLOAT32_BYTES,
      work.points,
      k * PANEL_BYTES,
      work.outputs,
      n * FLOAT32_BYTES,
      block * n * FLOAT32_BYTES,
      work.zeros,
    );
    eachRun(method, part, first, tiles, (run) => {
      for (const [i, image] of part.outputs.entries())
        transform(heap, method, 'output', image, run, rows(work.outputs + offset(part.outputs, i), n), bias);
    });
  });
}

/** Shifts all images so that tiles start at the first output. */
function fromFirstOutput({ batch, inputs, outputs }: Convolved): Convolved {
  const [top, left] = [outputs.map((one) => one.top), outputs.map((one) => one.left)].map((all) =>
    Math.min(...all),
  );
  const moved = (images: Image[]) =>
    images.map((one) => ({ ...one, top: one.top - top, left: one.left - left }));
  return { batch, inputs: moved(inputs), outputs: moved(outputs) };
}

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

function transform(
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

function eachBlock(
  method: Method,
  part: Convolved,
  block: number,
  visit: (first: number, count: number) => void,
): void {
  const [rows, columns] = tilesOf(method, part);
  const all = part.batch * rows * columns;
  for (let first = 0; first < all; first += block) visit(first, Math.min(block, all - first));
}

function eachRun(
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
