/**
 * 3 x 3 convolutions of stride 1, with any dilation, by Winograd's method: a tile of 4 x 4 outputs takes 36 multiplications for each pair of
 * channels in place of 144. The matrices are in tools/wat/winograd.ts.
 */
import type { Shape } from './convolution.js';
import { BYTES, type Heap, upTo } from './heap.js';
import { PANEL, ROWS } from './products.js';

const TILE = 4;
const POINTS = (TILE + 2) ** 2;
const TAPS = 3;
/** Channels of a vector. */
const GROUP = 4;
const PANEL_BYTES = PANEL * BYTES;
/** Floats of a block of tiles, which the second cache should hold. */
const BLOCK = 2 ** 17;
const MOST_TILES = 192;
/** Tiles of which the sums of a gradient are added up at once: each time, all sums are read and written. */
const LEAST_SUMMED = 64;

export function isWinograd({ filter, stride, dilation, top, left, channels, outputs }: Shape): boolean {
  const [distance] = dilation;
  const is3x3 = filter.every((taps) => taps === TAPS) && stride.every((step) => step === 1);
  const isDivided = distance === dilation[1] && top % distance === 0 && left % distance === 0;
  return is3x3 && isDivided && channels % PANEL === 0 && outputs % PANEL === 0;
}

/** Pixels on the heap. Distances are in bytes. */
interface Image {
  address: number;
  height: number;
  width: number;
  channels: number;
  pixel: number;
  row: number;
  image: number;
}

/** A convolution without dilation. `top` and `left` are padding, which may be negative. */
interface Convolved {
  batch: number;
  input: Image;
  output: Image;
  top: number;
  left: number;
}

export function forward(heap: Heap, s: Shape, x: number, filter: number, y: number, bias = 0): void {
  const block = blockOf(s);
  const [points, zeros, ...work] = heap.regions(
    ...[POINTS * s.channels * s.outputs, PANEL, POINTS * block * s.channels, POINTS * block * s.outputs],
  );
  heap.floats(zeros, PANEL).fill(0);
  toFilterPoints(heap, filter, s.channels, s.outputs, points);
  for (const part of partsOf(s, x, y)) convolve(heap, part, { block, points, zeros, work, bias });
}

/** Convolves the gradients with the filter turned by half a turn, whose channels and outputs change places. */
export function toInput(heap: Heap, s: Shape, dx: number, filter: number, dy: number): void {
  const block = blockOf(s);
  const size = s.channels * s.outputs;
  const [turned, points, zeros, ...work] = heap.regions(
    ...[TAPS ** 2 * size, POINTS * size, PANEL, POINTS * block * s.outputs, POINTS * block * s.channels],
  );
  heap.floats(zeros, PANEL).fill(0);
  for (let tap = 0; tap < TAPS ** 2; tap++) {
    const from = filter + (TAPS ** 2 - 1 - tap) * size * BYTES;
    const to = turned + tap * size * BYTES;
    heap.run.copyStrided(s.outputs, s.channels, from, BYTES, s.outputs * BYTES, to, s.channels * BYTES);
  }
  toFilterPoints(heap, turned, s.outputs, s.channels, points);
  for (const { batch, input, output, top, left } of partsOf(s, dx, dy)) {
    const part = { batch, input: output, output: input, top: TAPS - 1 - top, left: TAPS - 1 - left };
    convolve(heap, part, { block, points, zeros, work, bias: 0 });
  }
}

/** Convolves the input with the gradients, 3 x 3 outputs of 4 x 4 taps a tile, and adds the tiles up before they leave the points. */
export function toFilter(heap: Heap, s: Shape, x: number, dw: number, dy: number): void {
  const { channels, outputs } = s;
  const block = blockOf(s, LEAST_SUMMED);
  const size = channels * outputs;
  const [sums, inputs, gradients] = heap.regions(
    ...[POINTS * size, POINTS * block * channels, POINTS * block * outputs],
  );
  heap.floats(sums, POINTS * size).fill(0);
  for (const part of partsOf(s, x, dy))
    eachBlock(part, block, (first, count) => {
      // Panels of eight channels, which the products read without gaps.
      const panels = (of: number) => ({
        step: block * of * BYTES,
        tile: PANEL_BYTES,
        pair: block * PANEL_BYTES,
      });
      eachRun(part, first, count, (run) => {
        toPoints(heap.run.inputPoints, part.input, run, { address: inputs, ...panels(channels) }, part);
        toPoints(heap.run.gradientPoints, part.output, run, { address: gradients, ...panels(outputs) });
      });
      for (let c = 0; c < channels; c += PANEL)
        heap.run.multiplyPoints(
          ...[POINTS, outputs / PANEL, PANEL, count],
          ...[inputs + c * block * BYTES, BYTES, PANEL_BYTES, ROWS * BYTES, block * channels * BYTES],
          ...[gradients, block * PANEL_BYTES],
          ...[sums + c * outputs * BYTES, outputs * BYTES, size * BYTES, 0],
        );
    });
  heap.run.filterPixels(
    ...[
      channels,
      outputs / GROUP,
      dw,
      TAPS * size * BYTES,
      size * BYTES,
      outputs * BYTES,
      0,
      0,
      TAPS,
      TAPS,
      0,
    ],
    ...[sums, size * BYTES, outputs * BYTES, PANEL_BYTES, 0],
  );
}

function blockOf({ channels, outputs }: Shape, least = ROWS): number {
  const tiles = BLOCK / (POINTS * (channels + outputs));
  return Math.max(least, Math.min(MOST_TILES, Math.floor(tiles / ROWS) * ROWS));
}

/** Every n-th pixel of an image and of its output belong together where the taps of a filter are n pixels apart. */
function partsOf(s: Shape, x: number, y: number): Convolved[] {
  const [distance] = s.dilation;
  const partOf = (
    address: number,
    height: number,
    width: number,
    channels: number,
    at: [number, number],
  ) => ({
    address: address + (at[0] * width + at[1]) * channels * BYTES,
    height: Math.ceil((height - at[0]) / distance),
    width: Math.ceil((width - at[1]) / distance),
    channels,
    pixel: distance * channels * BYTES,
    row: distance * width * channels * BYTES,
    image: height * width * channels * BYTES,
  });
  return Array.from({ length: distance ** 2 }, (_, i) => {
    const at: [number, number] = [Math.floor(i / distance), i % distance];
    return {
      batch: s.batch,
      input: partOf(x, s.height, s.width, s.channels, at),
      output: partOf(y, s.rows, s.columns, s.outputs, at),
      top: s.top / distance,
      left: s.left / distance,
    };
  });
}

/** Writes a filter [3, 3, inputs, outputs] as points, in panels of eight outputs. */
function toFilterPoints(
  { run }: Heap,
  filter: number,
  inputs: number,
  outputs: number,
  points: number,
): void {
  const size = inputs * outputs * BYTES;
  for (let first = 0; first < outputs; first += PANEL)
    run.filterPoints(
      ...[
        inputs,
        PANEL / GROUP,
        filter + first * BYTES,
        TAPS * size,
        size,
        outputs * BYTES,
        0,
        0,
        TAPS,
        TAPS,
        0,
      ],
      ...[points + first * inputs * BYTES, size, PANEL_BYTES, 0],
    );
}

function convolve(
  heap: Heap,
  part: Convolved,
  of: { block: number; points: number; zeros: number; work: number[]; bias: number },
): void {
  const { block, points, zeros, work, bias } = of;
  const [inputs, outputs] = [part.input.channels, part.output.channels];
  const rows = (address: number, channels: number) => ({
    ...{ address, step: block * channels * BYTES, tile: channels * BYTES, pair: PANEL_BYTES },
  });
  const [from, to] = [rows(work[0], inputs), rows(work[1], outputs)];
  eachBlock(part, block, (first, count) => {
    eachRun(part, first, count, (run) => toPoints(heap.run.inputPoints, part.input, run, from, part));
    heap.run.multiplyPoints(
      ...[POINTS, outputs / PANEL, upTo(ROWS, count), inputs],
      ...[from.address, from.tile, BYTES, ROWS * from.tile, from.step],
      ...[points, inputs * PANEL_BYTES, to.address, to.tile, to.step, zeros],
    );
    eachRun(part, first, count, (run) =>
      toPoints(heap.run.outputPixels, part.output, run, to, undefined, bias),
    );
  });
}

/** Where the points of tiles are, in bytes: from a point, a tile and a pair of groups of channels to the next. */
interface Points {
  address: number;
  step: number;
  tile: number;
  pair: number;
}

/** Neighbouring tiles of a row: the first one, in its block and in its image. */
interface Run {
  at: number;
  count: number;
  image: number;
  row: number;
  column: number;
}

function toPoints(
  transform: (...numbers: number[]) => void,
  { address, row, pixel, image, channels, height, width }: Image,
  run: Run,
  points: Points,
  { top, left }: { top: number; left: number } = { top: 0, left: 0 },
  ...more: number[]
): void {
  const [y, x] = [TILE * run.row - top, TILE * run.column - left];
  transform(
    ...[run.count, channels / GROUP, address + run.image * image + y * row + x * pixel],
    ...[row, pixel, TILE * pixel, y, x, height, width, TILE],
    ...[points.address + run.at * points.tile, points.step, points.tile, points.pair],
    ...more,
  );
}

const tilesOf = ({ height, width }: Image) => [Math.ceil(height / TILE), Math.ceil(width / TILE)];

function eachBlock(
  { batch, output }: Convolved,
  block: number,
  visit: (first: number, count: number) => void,
): void {
  const [rows, columns] = tilesOf(output);
  const all = batch * rows * columns;
  for (let first = 0; first < all; first += block) visit(first, Math.min(block, all - first));
}

function eachRun({ output }: Convolved, first: number, count: number, visit: (run: Run) => void): void {
  const [rows, columns] = tilesOf(output);
  for (let at = 0; at < count; ) {
    const line = Math.floor((first + at) / columns);
    const column = (first + at) % columns;
    const length = Math.min(count - at, columns - column);
    visit({ at, count: length, image: Math.floor(line / rows), row: line % rows, column });
    at += length;
  }
}
