/** The loops on the heap of tfjs: WebAssembly (loops.wat) where the time goes, TypeScript around it. */
import { readFileSync } from 'node:fs';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import { FORWARD, type Loops, TO_INPUT } from './loops.js';

type Call = (...numbers: number[]) => void;
type Exports = Record<
  | 'leakyRelu'
  | 'leakyReluGradient'
  | 'channelSums'
  | 'batchNormGradient'
  | 'copyRuns'
  | 'addRuns'
  | 'copyStrided'
  | 'adam'
  | 'multiplyPanel',
  Call
>;

/** What the backend keeps to itself: the exports of its module. */
interface Heap {
  asm: { memory: WebAssembly.Memory };
  _malloc(bytes: number): number;
  _free(address: number): void;
}

const FLOAT = 4;
/** Columns of a product that are computed at once, and rows. */
const PANEL = 8;
const ROWS = 4;
/** Pixels whose surroundings lie side by side for one product: as many as the second cache holds. */
const MOST_PIXELS = 128;
const LEAST_PIXELS = 32;
const BLOCK_FLOATS = 2 ** 17;

const upTo = (step: number, n: number) => Math.ceil(n / step) * step;

/** Of the started backend. Arrays that are not on its heap are copied there and back. */
export function heapLoops(backend: BackendWasm): Loops {
  const heap = backend.wasm as unknown as Heap;
  const { memory } = heap.asm;
  const module = new WebAssembly.Module(readFileSync(new URL('./loops.wasm', import.meta.url)));
  const run = new WebAssembly.Instance(module, { tfjs: { memory } }).exports as Exports;
  const floatsAt = (address: number, length: number) => new Float32Array(memory.buffer, address, length);

  /** Memory that grows and is used again; after `take` views of the heap may be no good. */
  const scratch = () => {
    let [address, size] = [0, 0];
    return (bytes: number): number => {
      if (bytes > size) {
        heap._free(address);
        size = bytes;
        address = heap._malloc(size) >>> 0;
        if (address === 0) throw new Error(`the WASM heap has no ${size} bytes left`);
      }
      return address;
    };
  };
  const takeForCalls = scratch();
  const takeForProducts = scratch();
  // So that values of channels need no growth, which would part the views of a caller from the heap.
  takeForCalls(2 ** 18);

  function onHeap(arrays: readonly Float32Array[], call: Call): void {
    const away = arrays.filter(({ buffer }) => buffer !== memory.buffer);
    const addresses = arrays.map(({ byteOffset }) => byteOffset);
    const lengths = arrays.map(({ length }) => length);
    let next = takeForCalls(away.reduce((sum, { byteLength }) => sum + upTo(16, byteLength), 0));
    for (const [i, array] of arrays.entries()) {
      if (!away.includes(array)) continue;
      addresses[i] = next;
      floatsAt(next, lengths[i]).set(array);
      next += upTo(16, array.byteLength);
    }
    call(...addresses);
    for (const [i, array] of arrays.entries())
      if (away.includes(array)) array.set(floatsAt(addresses[i], lengths[i]));
  }

  /** Regions of scratch memory, one after another. */
  function regions(...lengths: number[]): number[] {
    let next = takeForProducts(lengths.reduce((sum, length) => sum + upTo(16, length * FLOAT), 0));
    return lengths.map((length) => {
      const address = next;
      next += upTo(16, length * FLOAT);
      return address;
    });
  }

  interface Matrix {
    address: number;
    /** Values from a row, and from a column, to the next. */
    row: number;
    column: number;
  }

  /** The columns of b [k,n] in panels of eight, each without gaps. */
  function packed(b: Matrix, k: number, n: number, to: number): void {
    for (let first = 0; first < n; first += PANEL) {
      const from = b.address + first * b.column * FLOAT;
      const target = to + first * k * FLOAT;
      const columns = Math.min(PANEL, n - first);
      run.copyStrided(k, columns, from, b.row * FLOAT, b.column * FLOAT, target, PANEL * FLOAT);
    }
  }

  /** c [m,n] = a b of packed panels; rows of c lie n apart, and the sums begin at `start` [n], packed as well. `edge` is for m x 8 values. */
  function product(
    [m, n, k]: readonly [number, number, number],
    a: Matrix,
    panels: number,
    start: number,
    c: number,
    edge: number,
  ): void {
    const rows = upTo(ROWS, m);
    for (let first = 0; first < n; first += PANEL) {
      const columns = Math.min(PANEL, n - first);
      const fits = rows === m && columns === PANEL;
      const to = c + first * FLOAT;
      const b = panels + first * k * FLOAT;
      const [target, width] = fits ? [to, n * FLOAT] : [edge, PANEL * FLOAT];
      const begin = start + first * FLOAT;
      run.multiplyPanel(rows, k, a.address, a.row * FLOAT, a.column * FLOAT, b, target, width, begin);
      if (!fits) run.copyRuns(m, columns, edge, PANEL * FLOAT, to, n * FLOAT);
    }
  }

  const loops: Loops = {
    convolve(direction, geometry, x, filter, y, bias) {
      const shape = shapeOf(geometry);
      const { taps, outChannels: outputs, pixels } = shape;
      const work = direction === FORWARD ? forward : direction === TO_INPUT ? toInput : toFilter;
      const most = Math.max(LEAST_PIXELS, Math.min(MOST_PIXELS, BLOCK_FLOATS / taps));
      const block = Math.min(upTo(ROWS, pixels), Math.floor(most / ROWS) * ROWS);
      onHeap(bias ? [x, filter, y, bias] : [x, filter, y], (...at) => {
        work(shape, block, at[0], at[1], at[2], at[3]);
      });

      function forward(s: Shape, block: number, x: number, filter: number, y: number, bias?: number) {
        const wide = upTo(PANEL, outputs);
        const [panels, start, zeros, columns, edge] = regions(
          ...[wide * taps, wide, s.channels, block * taps, block * PANEL],
        );
        packed({ address: filter, row: outputs, column: 1 }, taps, outputs, panels);
        floatsAt(start, wide).fill(0);
        if (bias !== undefined) run.copyRuns(1, outputs, bias, 0, start, 0);
        floatsAt(zeros, s.channels).fill(0);
        for (let first = 0; first < pixels; first += block) {
          const count = Math.min(block, pixels - first);
          forEachRun(s, first, count, (inside, rows, from, fromRow, to) => {
            const source = inside ? x + from * FLOAT : zeros;
            run.copyRuns(
              rows,
              s.channels,
              source,
              inside ? fromRow * FLOAT : 0,
              columns + to * FLOAT,
              taps * FLOAT,
            );
          });
          const a = { address: columns, row: taps, column: 1 };
          product([count, outputs, taps], a, panels, start, y + first * outputs * FLOAT, edge);
        }
      }

      function toInput(s: Shape, block: number, dx: number, filter: number, dy: number) {
        const wide = upTo(PANEL, taps);
        const [panels, start, columns, edge, copy] = regions(
          ...[wide * outputs, wide, block * taps, block * PANEL, block * outputs],
        );
        packed({ address: filter, row: 1, column: outputs }, outputs, taps, panels);
        floatsAt(start, wide).fill(0);
        floatsAt(dx, s.batch * s.height * s.width * s.channels).fill(0);
        for (let first = 0; first < pixels; first += block) {
          const count = Math.min(block, pixels - first);
          let address = dy + first * outputs * FLOAT;
          // Rows behind the last are read.
          if (count % ROWS !== 0) {
            run.copyRuns(1, count * outputs, address, 0, copy, 0);
            address = copy;
          }
          product([count, taps, outputs], { address, row: outputs, column: 1 }, panels, start, columns, edge);
          forEachRun(s, first, count, (inside, rows, to, toRow, from) => {
            if (!inside) return;
            run.addRuns(
              rows,
              s.channels,
              columns + from * FLOAT,
              taps * FLOAT,
              dx + to * FLOAT,
              toRow * FLOAT,
            );
          });
        }
      }

      function toFilter(s: Shape, block: number, x: number, dw: number, dy: number) {
        const [tall, wide] = [upTo(ROWS, taps), upTo(PANEL, outputs)];
        const [sums, panels, zeros, columns] = regions(
          ...[tall * wide, wide * block, s.channels, block * tall],
        );
        for (const [at, length] of [
          [sums, tall * wide],
          [zeros, s.channels],
          [columns, block * tall],
          [panels, wide * block],
        ])
          floatsAt(at, length).fill(0);
        for (let first = 0; first < pixels; first += block) {
          const count = Math.min(block, pixels - first);
          forEachRun({ ...s, taps: tall }, first, count, (inside, rows, from, fromRow, to) => {
            const source = inside ? x + from * FLOAT : zeros;
            run.copyRuns(
              rows,
              s.channels,
              source,
              inside ? fromRow * FLOAT : 0,
              columns + to * FLOAT,
              tall * FLOAT,
            );
          });
          packed({ address: dy + first * outputs * FLOAT, row: outputs, column: 1 }, count, outputs, panels);
          for (let o = 0; o < outputs; o += PANEL)
            run.multiplyPanel(
              ...[tall, count, columns, FLOAT, tall * FLOAT],
              ...[panels + o * count * FLOAT, sums + o * FLOAT, wide * FLOAT, 0],
            );
        }
        run.copyRuns(taps, outputs, sums, wide * FLOAT, dw, outputs * FLOAT);
      }
    },

    multiply([m, n, k, transposeA, transposeB], a, b, c) {
      onHeap([a, b, c], (fromA, fromB, toC) => {
        const [tall, wide] = [upTo(ROWS, m), upTo(PANEL, n)];
        const [panels, start, edge, copy] = regions(wide * k, wide, tall * PANEL, tall === m ? 0 : tall * k);
        const ofB = transposeB ? { row: 1, column: k } : { row: n, column: 1 };
        packed({ address: fromB, ...ofB }, k, n, panels);
        floatsAt(start, wide).fill(0);
        let ofA = { address: fromA, ...(transposeA ? { row: 1, column: m } : { row: k, column: 1 }) };
        if (tall !== m) {
          run.copyStrided(m, k, fromA, ofA.row * FLOAT, ofA.column * FLOAT, copy, k * FLOAT);
          ofA = { address: copy, row: k, column: 1 };
        }
        product([m, n, k], ofA, panels, start, toC, edge);
      });
    },

    columnSums(rows, columns, x, sums) {
      const [all] = channelSums(rows, columns, x, x, new Float32Array(columns));
      sums.set(all);
    },

    maxPoolGradient: maxPoolGradient,

    leakyRelu(length, alpha, x, y) {
      onHeap([x, y], (...at) => run.leakyRelu(length, alpha, ...at));
    },

    leakyReluGradient(length, alpha, x, dy, dx) {
      onHeap([x, dy, dx], (...at) => run.leakyReluGradient(length, alpha, ...at));
    },

    scaleChannels(rows, channels, x, mean, scale, offset, y) {
      const none = new Float32Array(channels);
      loops.batchNormGradient(rows, channels, x, x, mean, none, scale, offset, y);
    },

    channelMoments(rows, channels, x, mean, variance) {
      // Distances from the first row, since a mean that is large beside the deviations would swallow these.
      const first = x.slice(0, channels);
      const [sums, products] = channelSums(rows, channels, x, x, first);
      for (let c = 0; c < channels; c++) {
        const distance = sums[c] / rows - first[c];
        mean[c] = sums[c] / rows;
        variance[c] = Math.max(
          0,
          (products[c] - first[c] * (sums[c] - rows * first[c])) / rows - distance ** 2,
        );
      }
    },

    batchNormSums(rows, channels, x, dy, mean, sums, products) {
      const [allSums, allProducts] = channelSums(rows, channels, x, dy, mean);
      sums.set(allSums);
      products.set(allProducts);
    },

    batchNormGradient(rows, channels, x, dy, mean, scale, slope, offset, dx) {
      onHeap([x, dy, mean, scale, slope, offset, dx], (...at) =>
        run.batchNormGradient(rows, channels, ...at),
      );
    },

    copyColumns([rows, columns, fromWidth, fromColumn, toWidth, toColumn], from, to) {
      onHeap([from, to], (source, target) =>
        run.copyRuns(
          ...[rows, columns, source + fromColumn * FLOAT, fromWidth * FLOAT],
          ...[target + toColumn * FLOAT, toWidth * FLOAT],
        ),
      );
    },

    adam(length, beta1, beta2, decay, rate, epsilon, ...arrays) {
      onHeap(arrays, (...at) => run.adam(length, 1 - beta1, 1 - beta2, decay, rate, epsilon, ...at));
    },
  };

  /** Of each channel the sum of dy, and that of dy (x - mean). */
  function channelSums(
    ...[rows, channels, x, dy, mean]: [number, number, Float32Array, Float32Array, Float32Array]
  ): [Float64Array, Float64Array] {
    const results = [0, 1].map(() => new Float64Array(channels));
    const asFloats = results.map(({ buffer }) => new Float32Array(buffer));
    onHeap([x, dy, mean, ...asFloats], (...at) => run.channelSums(rows, channels, ...at));
    return results as [Float64Array, Float64Array];
  }

  return loops;
}

interface Shape {
  batch: number;
  height: number;
  width: number;
  channels: number;
  outChannels: number;
  filter: [number, number];
  stride: [number, number];
  dilation: [number, number];
  top: number;
  left: number;
  rows: number;
  columns: number;
  /** Values of the input that go into a pixel of the output. */
  taps: number;
  /** Of the output. */
  pixels: number;
}

function shapeOf(geometry: Int32Array): Shape {
  const [batch, height, width, channels, outChannels, ...rest] = geometry;
  const [filterHeight, filterWidth, strideHeight, strideWidth, dilationHeight, dilationWidth] = rest;
  const [top, left, bottom, right] = rest.slice(6);
  const size = (length: number, filter: number, stride: number, dilation: number) =>
    Math.floor((length - ((filter - 1) * dilation + 1)) / stride) + 1;
  const rows = size(height + top + bottom, filterHeight, strideHeight, dilationHeight);
  const columns = size(width + left + right, filterWidth, strideWidth, dilationWidth);
  return {
    ...{ batch, height, width, channels, outChannels, top, left, rows, columns },
    filter: [filterHeight, filterWidth],
    stride: [strideHeight, strideWidth],
    dilation: [dilationHeight, dilationWidth],
    taps: filterHeight * filterWidth * channels,
    pixels: batch * rows * columns,
  };
}

/**
 * For output pixels `first` and on, how their surroundings lie: for each tap of the filter runs of pixels, of `rows` pixels in
 * the input from the value `from` on and `fromRow` values apart, or outside of it. `to` is the first value among the
 * surroundings, which lie `taps` apart.
 */
function forEachRun(
  s: Shape,
  first: number,
  count: number,
  visit: (inside: boolean, rows: number, from: number, fromRow: number, to: number) => void,
): void {
  const [stepY, stepX] = s.stride;
  for (let done = 0; done < count; ) {
    const row = Math.floor((first + done) / s.columns);
    const begin = (first + done) % s.columns;
    const end = Math.min(s.columns, begin + count - done);
    const image = Math.floor(row / s.rows);
    for (let i = 0; i < s.filter[0]; i++) {
      const y = (row % s.rows) * stepY - s.top + i * s.dilation[0];
      const isOutside = y < 0 || y >= s.height;
      for (let j = 0; j < s.filter[1]; j++) {
        const shift = j * s.dilation[1] - s.left;
        const within = (column: number) => Math.max(begin, Math.min(end, column));
        const low = isOutside ? end : within(Math.ceil(-shift / stepX));
        const high = Math.max(low, within(Math.ceil((s.width - shift) / stepX)));
        const at = (column: number) => (done + column - begin) * s.taps + (i * s.filter[1] + j) * s.channels;
        if (low > begin) visit(false, low - begin, 0, 0, at(begin));
        if (high > low) {
          const from = ((image * s.height + y) * s.width + low * stepX + shift) * s.channels;
          visit(true, high - low, from, stepX * s.channels, at(low));
        }
        if (end > high) visit(false, end - high, 0, 0, at(high));
      }
    }
    done += end - begin;
  }
}

/** Each gradient goes to the first maximum of its window. */
function maxPoolGradient(geometry: Int32Array, x: Float32Array, dy: Float32Array, dx: Float32Array): void {
  const [batch, height, width, channels, rows, columns, filterHeight, filterWidth] = geometry;
  const [strideHeight, strideWidth, top, left] = geometry.subarray(8);
  const largest = new Float32Array(channels);
  const position = new Int32Array(channels);
  let from = 0;
  for (let n = 0; n < batch; n++) {
    for (let row = 0; row < rows; row++) {
      const firstRow = row * strideHeight - top;
      const endRow = Math.min(height, firstRow + filterHeight);
      for (let column = 0; column < columns; column++, from += channels) {
        const firstColumn = column * strideWidth - left;
        const endColumn = Math.min(width, firstColumn + filterWidth);
        largest.fill(-Infinity);
        position.fill(-1);
        for (let i = Math.max(0, firstRow); i < endRow; i++) {
          for (let j = Math.max(0, firstColumn); j < endColumn; j++) {
            const at = ((n * height + i) * width + j) * channels;
            for (let c = 0; c < channels; c++) {
              const value = x[at + c];
              if (value > largest[c]) {
                largest[c] = value;
                position[c] = at + c;
              }
            }
          }
        }
        for (let c = 0; c < channels; c++) {
          const at = position[c];
          if (at >= 0) dx[at] += dy[from + c];
        }
      }
    }
  }
}
