/** Resampling by weighted means of many pixels: cubic, cubic spline, Lanczos, and the mean over the area of a pixel. */

/** The weight of a pixel by its distance in pixels, and the distance from which on the weight is 0. */
interface Kernel {
  radius: number;
  weight: (distance: number) => number;
}

const sinc = (x: number) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

/** The kernels of GDAL. */
const KERNELS = {
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

export type KernelName = keyof typeof KERNELS | 'average';

/** The pixels of one axis that contribute to each position of an image, and their weights, whose sum is 1. */
export interface Taps {
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
/** Largest factor by which kernels are widened, unlike in GDAL: wider ones would cost more than reading the pixels. */
const MAX_KERNEL_SCALE = 4;

/** `centres`: positions in pixels, 0 at the edge of the first pixel; `step`: pixels from one position to the next. */
export function tapsOf(name: KernelName, centres: Float64Array, step: number, size: number): Taps {
  return name === 'average' ? areaTaps(centres, step, size) : kernelTaps(KERNELS[name], centres, step, size);
}

function kernelTaps({ radius, weight }: Kernel, centres: Float64Array, step: number, size: number): Taps {
  const scale = step > MAX_UNSMOOTHED_STEP ? Math.min(step, MAX_KERNEL_SCALE) : 1;
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

/**
 * Weighted means of a window of the pixels [columns.from, columns.to) x [rows.from, rows.to), along rows first. A mean over NaN values is
 * NaN.
 */
export function convolve(source: Float64Array, columns: Taps, rows: Taps): Float64Array {
  const width = columns.to - columns.from;
  const height = rows.to - rows.from;
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
