/** Resamples stored bands to physical values at the pixels of an image. */
import type { TaskPool } from '../async/index.js';
import type { PixelArray, Window } from '../raster/index.js';
import { type BandFile, physicalValue } from './band-files.js';
import type { TileReader } from './tile-reader.js';
import type { Viewport } from './viewport.js';

/** A weighted mean of many pixels: the weight of a pixel by its distance in pixels, and the distance from which on the weight is 0. */
interface Kernel {
  radius: number;
  weight: (distance: number) => number;
}

const sinc = (x: number) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

/** The kernels of GDAL. */
const KERNELS = {
  bilinear: { radius: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  /** Cubic convolution with a = -0.5 (Keys 1981). */
  cubic: {
    radius: 2,
    weight(x) {
      const d = Math.abs(x);
      if (d <= 1) return 1.5 * d ** 3 - 2.5 * d ** 2 + 1;
      return d < 2 ? -0.5 * d ** 3 + 2.5 * d ** 2 - 4 * d + 2 : 0;
    },
  },
  /** Cubic B-spline, which smoothes. */
  cubic_spline: {
    radius: 2,
    weight(x) {
      const d = Math.abs(x);
      if (d <= 1) return 2 / 3 - d ** 2 + d ** 3 / 2;
      return d < 2 ? (2 - d) ** 3 / 6 : 0;
    },
  },
  lanczos: { radius: 3, weight: (x) => (Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0) },
} satisfies Record<string, Kernel>;

type KernelName = keyof typeof KERNELS | 'average';

/** The pixels of one axis that contribute to each position of an image, and their weights, whose sum is 1. */
interface Taps {
  /** The pixels [from, to) are needed; `first` counts from `from`. */
  from: number;
  to: number;
  /** The first pixel of each position. */
  first: Int32Array;
  /** `count` weights of each position, 0 beyond its pixels. */
  weights: Float64Array;
  count: number;
  /** 1 for positions that need pixels beyond the edge. */
  beyond: Uint8Array;
}

/** Steps up to this many pixels are not smoothed over the step, as in GDAL. */
const MAX_UNSMOOTHED_STEP = 1 / 0.95;
/**
 * Largest factor by which large kernels are widened, unlike in GDAL: wider ones would cost more than reading the pixels. The bilinear
 * kernel costs little more than the mean of the same pixels.
 */
const MAX_KERNEL_SCALE = 4;

/** `centres`: positions in pixels, 0 at the edge of the first pixel; `step`: pixels from one position to the next. */
function tapsOf(name: KernelName, centres: Float64Array, step: number, size: number): Taps {
  return name === 'average' ? areaTaps(centres, step, size) : kernelTaps(KERNELS[name], centres, step, size);
}

function kernelTaps({ radius, weight }: Kernel, centres: Float64Array, step: number, size: number): Taps {
  const most = radius > 1 ? MAX_KERNEL_SCALE : Infinity;
  const scale = step > MAX_UNSMOOTHED_STEP ? Math.min(step, most) : 1;
  const reach = radius * scale;
  const spans = Array.from(centres, (centre) => {
    // The pixels whose centres are nearer than the reach.
    const low = Math.floor(centre - 0.5 - reach) + 1;
    const high = Math.ceil(centre - 0.5 + reach);
    return [low, high] as const;
  });
  return taps(spans, size, (position, pixel) => weight((pixel + 0.5 - centres[position]) / scale));
}

/** Weights are the overlaps of pixels with the step around a position. */
function areaTaps(centres: Float64Array, step: number, size: number): Taps {
  const edges = (centre: number) => [Math.max(0, centre - step / 2), Math.min(size, centre + step / 2)];
  const spans = Array.from(centres, (centre) => {
    const [west, east] = edges(centre);
    return [Math.floor(west), Math.ceil(east)] as const;
  });
  return taps(spans, size, (position, pixel) => {
    const [west, east] = edges(centres[position]);
    return Math.max(0, Math.min(east, pixel + 1) - Math.max(west, pixel));
  });
}

function taps(
  spans: (readonly [low: number, high: number])[],
  size: number,
  weight: (position: number, pixel: number) => number,
): Taps {
  const inside = spans.map(([low, high]) => [Math.max(0, low), Math.min(size, high)] as const);
  const from = Math.min(...inside.map(([low]) => low));
  const to = Math.max(...inside.map(([, high]) => high));
  const count = Math.max(...inside.map(([low, high]) => high - low));
  const first = Int32Array.from(inside, ([low]) => low - from);
  const beyond = Uint8Array.from(spans, ([low, high]) => (low < 0 || high > size ? 1 : 0));
  const weights = new Float64Array(count * spans.length);
  for (const [position, [low, high]] of inside.entries()) {
    let sum = 0;
    for (let pixel = low; pixel < high; pixel++) sum += weight(position, pixel);
    for (let pixel = low; pixel < high; pixel++)
      weights[position * count + pixel - low] = weight(position, pixel) / sum;
  }
  return { from, to, first, weights, count, beyond };
}

type WindowSize = Pick<Window, 'width' | 'height'>;

/** Weighted means of the pixels of a window, along rows first. A mean over NaN values is NaN. */
function convolve(
  source: Float64Array,
  { width, height }: WindowSize,
  columns: Taps,
  rows: Taps,
): Float64Array {
  const across = columns.first.length;
  const lines = new Float64Array(across * height);
  for (let row = 0, o = 0; row < height; row++)
    for (let x = 0; x < across; x++, o++) {
      const start = row * width + columns.first[x];
      let sum = 0;
      for (let k = 0; k < columns.count; k++) {
        const weight = columns.weights[x * columns.count + k];
        if (weight !== 0) sum += weight * source[start + k];
      }
      lines[o] = sum;
    }
  const out = new Float64Array(across * rows.first.length);
  for (let y = 0, o = 0; y < rows.first.length; y++)
    for (let x = 0; x < across; x++, o++) {
      const start = rows.first[y] * across + x;
      let sum = 0;
      for (let k = 0; k < rows.count; k++) {
        const weight = rows.weights[y * rows.count + k];
        if (weight !== 0) sum += weight * lines[start + k * across];
      }
      out[o] = sum;
    }
  return out;
}

/** Names of titiler and GDAL. */
export const RESAMPLING_METHODS = [
  'nearest',
  'bilinear',
  'cubic',
  'cubic_spline',
  'lanczos',
  'average',
] as const;
export type ResamplingMethod = (typeof RESAMPLING_METHODS)[number];

/** Smaller differences between positions, in pixels, are rounding errors. */
const PIXEL_EPSILON = 1e-9;

/** The reader of stored pixels, and threads for long computations. */
export interface ResampleContext {
  reader: TileReader;
  pool: TaskPool<ResampleHandlers>;
}

/** Larger tasks run in a worker thread. A step takes some nanoseconds, so other requests wait only for milliseconds. */
export const MAX_MAIN_THREAD_STEPS = 1_000_000;

/**
 * Returns physical values of a band, row by row, NaN if the nearest pixel has no data. Reads the smallest overview that has at least as
 * many pixels as the image. Throws TW_IMAGERY_TILE_FILE.
 */
export async function resampleBand(
  source: ResampleContext,
  file: BandFile,
  view: Viewport,
  resampling: ResamplingMethod,
): Promise<Float64Array> {
  const { reader } = source;
  const { levels } = await reader.structure(file);
  const finest = Math.min(view.columnStep * levels[0].width, view.rowStep * levels[0].height);
  const level = levels.findLastIndex(
    ({ width }) => levels[0].width / width <= Math.max(1, finest) + PIXEL_EPSILON,
  );
  const { width, height } = levels[level];
  if (resampling !== 'nearest') return byKernel(source, file, level, { width, height }, view, resampling);
  const columns = nearestOf(view.columns, width);
  const rows = nearestOf(view.rows, height);
  const pixels = await reader.window(file, level, windowOf(columns, rows));
  return nearest(pixels, file, columns, rows);
}

const windowOf = (columns: Span, rows: Span): Window => ({
  column: columns.from,
  row: rows.from,
  width: columns.to - columns.from,
  height: rows.to - rows.from,
});

/**
 * Kernels without negative weights. The weights of pixels without data or beyond the edge of the file are distributed to the other pixels.
 */
const RENORMALISED_KERNELS: KernelName[] = ['average', 'bilinear', 'cubic_spline'];

/** Stored pixels of a window, and the positions at which their weighted means are computed. Plain data, for worker threads. */
export interface KernelTask {
  pixels: PixelArray;
  file: BandFile;
  columns: KernelAxis;
  rows: KernelAxis;
  kernel: KernelName;
}

async function byKernel(
  { reader, pool }: ResampleContext,
  file: BandFile,
  level: number,
  { width, height }: { width: number; height: number },
  view: Viewport,
  kernel: KernelName,
): Promise<Float64Array> {
  const columns = kernelAxis(kernel, view.columns, view.columnStep, width);
  const rows = kernelAxis(kernel, view.rows, view.rowStep, height);
  const pixels = await reader.window(file, level, windowOf(columns, rows));
  const task = { pixels, file, columns, rows, kernel };
  const windowRows = rows.to - rows.from;
  const across = view.columns.length;
  const products = across * (windowRows * columns.taps.count + view.rows.length * rows.taps.count);
  if (products <= MAX_MAIN_THREAD_STEPS) return resampleByKernel(task);
  return pool.run({ kind: 'resample', ...task }, { transfer: [pixels.buffer as ArrayBuffer] });
}

export const RESAMPLE_HANDLERS = { resample: resampleByKernel };
export type ResampleHandlers = typeof RESAMPLE_HANDLERS;

/**
 * Weighted means of many pixels. A kernel with negative weights needs all of its pixels: if some of them have no data or lie beyond the
 * edge of the file, the value is the bilinear one, as in GDAL's cubic warps. NaN where the nearest pixel has no data.
 */
function resampleByKernel({ pixels, file, columns, rows, kernel }: KernelTask): Float64Array {
  const source = valuesOf(pixels, file.hole);
  const width = columns.to - columns.from;
  const size = { width, height: rows.to - rows.from };
  const shared = RENORMALISED_KERNELS.includes(kernel);
  const means = shared && source.hasHoles ? renormalisedMeans : convolve;
  const out = means(source.values, size, columns.taps, rows.taps);
  let plain: Float64Array | undefined;
  const across = columns.nearest.length;
  for (let i = 0; i < out.length; i++) {
    const [x, y] = [i % across, Math.floor(i / across)];
    const beyond = columns.taps.beyond[x] || rows.taps.beyond[y];
    if (source.hasHoles && Number.isNaN(source.values[rows.nearest[y] * width + columns.nearest[x]])) {
      out[i] = NaN;
      continue;
    }
    if ((!shared && beyond) || Number.isNaN(out[i])) {
      plain ??= renormalisedMeans(source.values, size, columns.plain, rows.plain);
      out[i] = plain[i];
    }
    out[i] = out[i] * file.scale + file.offset;
  }
  return out;
}

/** Stored pixels with NaN for no data. */
function valuesOf(pixels: PixelArray, hole: number): { values: Float64Array; hasHoles: boolean } {
  const values = new Float64Array(pixels.length);
  let hasHoles = false;
  for (let i = 0; i < values.length; i++) {
    const value = pixels[i];
    const isHole = value === hole || Number.isNaN(value);
    hasHoles ||= isHole;
    values[i] = isHole ? NaN : value;
  }
  return { values, hasHoles };
}

/** Means of the pixels that have data; NaN if there are none. */
function renormalisedMeans(source: Float64Array, size: WindowSize, columns: Taps, rows: Taps): Float64Array {
  const values = new Float64Array(source.length);
  const holdsData = new Float64Array(source.length);
  for (let i = 0; i < source.length; i++) {
    if (Number.isNaN(source[i])) continue;
    values[i] = source[i];
    holdsData[i] = 1;
  }
  const sums = convolve(values, size, columns, rows);
  const weights = convolve(holdsData, size, columns, rows);
  return sums.map((sum, i) => sum / weights[i]);
}

interface KernelAxis extends Span {
  taps: Taps;
  /** Taps of the bilinear kernel. */
  plain: Taps;
  /** The pixel of each position, counted from `from`. */
  nearest: Int32Array;
}

/** Taps of a kernel and of the bilinear one in one window that contains both. */
function kernelAxis(kernel: KernelName, shares: Float64Array, shareStep: number, size: number): KernelAxis {
  const last = shares.length - 1;
  // Rows of a map in degrees have varying distances.
  const step = (last > 0 ? (shares[last] - shares[0]) / last : shareStep) * size;
  const centres = shares.map((share) => share * size);
  const taps = tapsOf(kernel, centres, step, size);
  const plain = kernel === 'bilinear' ? taps : tapsOf('bilinear', centres, step, size);
  const pixel = nearestOf(shares, size);
  const from = Math.min(taps.from, plain.from, pixel.from);
  const to = Math.max(taps.to, plain.to, pixel.to);
  const shifted = (own: Taps) => ({ ...own, from, to, first: own.first.map((at) => at + own.from - from) });
  return {
    ...{ from, to },
    taps: shifted(taps),
    plain: shifted(plain),
    nearest: pixel.nearest.map((at) => at + pixel.from - from),
  };
}

/** The pixels [from, to) of an axis. */
interface Span {
  from: number;
  to: number;
}

/** The pixel of each position along one axis, counted from `from`. */
interface Nearest extends Span {
  nearest: Int32Array;
}

function nearestOf(shares: Float64Array, size: number): Nearest {
  const pixelAt = (share: number) =>
    Math.min(size - 1, Math.max(0, Math.floor(share * size + PIXEL_EPSILON)));
  const from = pixelAt(shares[0]);
  const to = pixelAt(shares[shares.length - 1]) + 1;
  return { from, to, nearest: Int32Array.from(shares, (share) => pixelAt(share) - from) };
}

function nearest(pixels: PixelArray, file: BandFile, columns: Nearest, rows: Nearest): Float64Array {
  const width = columns.to - columns.from;
  const across = columns.nearest.length;
  const out = new Float64Array(across * rows.nearest.length);
  for (let y = 0, o = 0; y < rows.nearest.length; y++) {
    const row = rows.nearest[y] * width;
    for (let x = 0; x < across; x++, o++) out[o] = physicalValue(pixels[row + columns.nearest[x]], file);
  }
  return out;
}
