/**
 * Convolutions by Winograd's method, whose matrices are in tools/wat/winograd.ts: a tile of 4 x 4 outputs of a 3 x 3 filter takes 36
 * multiplications for each pair of channels instead of 144. Filters of 4 x 4 with stride 2 are filters of 2 x 2 on four images of every
 * second row and column; tiles of 3 x 3 outputs take 16 multiplications instead of 36.
 */
import { PANEL_ROWS, PANEL_WIDTH } from './gemm.js';
import { FLOAT32_BYTES, roundUpTo, type WasmHeap } from './heap.js';
import type { Convolution } from './im2col.js';
import {
  type Convolved,
  eachBlock,
  eachRun,
  type Image,
  type Method,
  planOf,
  type Taps,
  transform,
  VECTOR,
} from './winograd-plan.js';

const PANEL_BYTES = PANEL_WIDTH * FLOAT32_BYTES;
/** Floats of a block of tiles, which should fit into the second-level cache. */
const BLOCK_FLOATS = 2 ** 17;
const MAX_TILES = 192;
/** Minimum number of tiles whose gradients are summed in one block: each block reads and writes all sums. */
const MIN_TILES_SUMMED = 64;

export const forward: Convolution = (heap, s, x, filter, y, bias = 0) => {
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
};

/** Convolves the gradients with the filter rotated by 180 degrees, with inputs and outputs swapped. */
export const inputGradient: Convolution = (heap, s, dx, filter, dy) => {
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
};

/** Convolves the input with the gradients, and sums the tiles before the inverse transform. */
export const filterGradient: Convolution = (heap, s, x, dw, dy) => {
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
};

/** Reserves transformed filter, zeros, transformed inputs and outputs of a block, and additional memory. */
function reserveScratch(heap: WasmHeap, method: Method, k: number, n: number, floats = 0) {
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
  work: ReturnType<typeof reserveScratch>,
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
