/**
 * Image quality metrics: PSNR, SSIM (Wang, Bovik, Sheikh and Simoncelli 2004) and multi-scale SSIM (Wang, Simoncelli and Bovik 2003), and
 * the rendering on which the images of models are scored. A mask excludes pixels: PSNR ignores every masked pixel, and SSIM ignores every
 * window that contains a masked pixel.
 */
import type { Patches } from './patches.js';

export interface ImagePair {
  width: number;
  height: number;
  /** One plane for each band, with the pixels row by row. Masked pixels may have any value. */
  truth: Float32Array[];
  /** Planes of the same bands and of the same size as `truth`. */
  predicted: Float32Array[];
  /** The mask: 1 for each pixel that counts, 0 for each masked pixel. Without a mask, all pixels count. */
  counts?: Uint8Array;
}

/** One band of an image pair. */
interface Plane extends Omit<ImagePair, 'truth' | 'predicted'> {
  truth: Float32Array;
  predicted: Float32Array;
}

/** Radius in pixels of the Gaussian window, which has 11 x 11 pixels, and its standard deviation in pixels. */
const RADIUS = 5;
const SIGMA = 1.5;
/** Factors of the stabilising constants, as in the paper on SSIM. */
const K1 = 0.01;
const K2 = 0.03;
/** Exponents of the five scales of multi-scale SSIM, from the finest scale to the coarsest. */
const SCALE_WEIGHTS = [0.0448, 0.2856, 0.3001, 0.2363, 0.1333];

const GAUSSIAN_WINDOW = gaussian();
/**
 * If a window contains a masked pixel, the weighted mean of the mask in the window is below this limit. Even the pixels in the corners,
 * which have the smallest weight, weigh 1e-6.
 */
const ALL_COUNT = 1 - 1e-7;

function gaussian(): Float64Array {
  const weights = Float64Array.from({ length: 2 * RADIUS + 1 }, (_, i) =>
    Math.exp(-((i - RADIUS) ** 2) / (2 * SIGMA ** 2)),
  );
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return weights.map((weight) => weight / sum);
}

/**
 * Returns the PSNR over all bands in decibels. The PSNR is Infinity if the images are equal, and null if no pixel counts. `peak` is the
 * maximum possible value.
 */
export function psnr({ truth, predicted, counts }: ImagePair, peak: number): number | null {
  let squares = 0;
  let count = 0;
  for (const [b, plane] of truth.entries())
    for (let i = 0; i < plane.length; i++) {
      if (counts?.[i] === 0) continue;
      squares += (plane[i] - predicted[b][i]) ** 2;
      count++;
    }
  return count === 0 ? null : 10 * Math.log10(peak ** 2 / (squares / count));
}

interface Similarity {
  /** The SSIM at full resolution, -1 to 1. */
  ssim: number;
  msSsim: MultiScale;
}

interface MultiScale {
  /** The multi-scale SSIM, 0 to 1. */
  value: number;
  /**
   * Number of scales, 1 to 5. A scale is used only if the image at this scale has at least one window without masked pixels, so small
   * images and large masks reduce the number. With fewer than five scales, the exponents are scaled up to the same sum.
   */
  scales: number;
}

/**
 * Returns SSIM and multi-scale SSIM, averaged over bands (like `channel_axis` of scikit-image). Returns null if every window of 11 x 11
 * pixels contains a masked pixel, or if the image is smaller than a window. `peak` is the difference between the largest and the smallest
 * possible value.
 */
export function similarity({ truth, predicted, ...shape }: ImagePair, peak: number): Similarity | null {
  const bands = truth.map((plane, b) => scalesOf({ ...shape, truth: plane, predicted: predicted[b] }, peak));
  // All bands have the same mask and therefore the same number of scales.
  const scales = bands[0].length;
  if (scales === 0) return null;
  const mean = (of: (band: ScaleSimilarity[]) => number) =>
    bands.reduce((sum, band) => sum + of(band), 0) / bands.length;
  return { ssim: mean(([finest]) => finest.ssim), msSsim: { value: mean(productOf), scales } };
}

interface ScaleSimilarity {
  /** Product of the luminance, contrast and structure terms, averaged over all windows without masked pixels. */
  ssim: number;
  /** Product of the contrast and structure terms only, averaged over the same windows. */
  contrast: number;
}

/** Returns the similarity at up to five scales, from the finest to the coarsest. */
function scalesOf(plane: Plane, peak: number): ScaleSimilarity[] {
  const found: ScaleSimilarity[] = [];
  for (let at = plane; found.length < SCALE_WEIGHTS.length; at = downsampleByTwo(at)) {
    const similar = similarityAt(at, peak);
    if (!similar) break;
    found.push(similar);
  }
  return found;
}

function productOf(found: ScaleSimilarity[]): number {
  const weights = SCALE_WEIGHTS.slice(0, found.length);
  const total = SCALE_WEIGHTS.reduce((sum, weight) => sum + weight, 0);
  const used = weights.reduce((sum, weight) => sum + weight, 0);
  // Multi-scale SSIM includes luminance only at the coarsest scale. A negative mean counts as 0.
  return found.reduce((product, { contrast, ssim }, i) => {
    const base = Math.max(0, i === found.length - 1 ? ssim : contrast);
    return product * base ** ((weights[i] * total) / used);
  }, 1);
}

function similarityAt(plane: Plane, peak: number): ScaleSimilarity | null {
  const { width, height, truth, predicted } = plane;
  if (width <= 2 * RADIUS || height <= 2 * RADIUS) return null;
  const values = new Float64Array(truth.length);
  const blurred = (of: (x: number, y: number) => number) => {
    // Masked pixels are set to zero, so that a NaN in them does not spread to windows without masked pixels.
    for (let i = 0; i < values.length; i++)
      values[i] = plane.counts?.[i] === 0 ? 0 : of(truth[i], predicted[i]);
    return blur(values, width, height);
  };
  const meanX = blurred((x) => x);
  const meanY = blurred((_, y) => y);
  const squareX = blurred((x) => x * x);
  const squareY = blurred((_, y) => y * y);
  const product = blurred((x, y) => x * y);
  const counting = plane.counts && blur(Float64Array.from(plane.counts), width, height);
  const c1 = (K1 * peak) ** 2;
  const c2 = (K2 * peak) ** 2;
  const sum = { ssim: 0, contrast: 0 };
  let count = 0;
  for (let i = 0; i < meanX.length; i++) {
    if (counting && counting[i] < ALL_COUNT) continue;
    const x = meanX[i];
    const y = meanY[i];
    const contrast = (2 * (product[i] - x * y) + c2) / (squareX[i] - x * x + squareY[i] - y * y + c2);
    sum.contrast += contrast;
    sum.ssim += (contrast * (2 * x * y + c1)) / (x * x + y * y + c1);
    count++;
  }
  return count === 0 ? null : { ssim: sum.ssim / count, contrast: sum.contrast / count };
}

/** Returns the Gaussian mean of each window that is completely inside the image: ten rows and ten columns fewer than the image has. */
function blur(values: Float64Array, width: number, height: number): Float64Array {
  const columns = width - 2 * RADIUS;
  return blurAlong(
    blurAlong(values, width, columns, height, 1),
    columns,
    columns,
    height - 2 * RADIUS,
    columns,
  );
}

/**
 * Blurs in one dimension. `width` is the number of values in a row of the input; `columns` and `rows` are the size of the result. `step` is
 * the distance between two averaged values in the array: 1 blurs along rows, `width` blurs along columns.
 */
function blurAlong(
  values: Float64Array,
  width: number,
  columns: number,
  rows: number,
  step: number,
): Float64Array {
  const result = new Float64Array(columns * rows);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      let sum = 0;
      for (let k = 0, at = row * width + column; k < GAUSSIAN_WINDOW.length; k++, at += step)
        sum += GAUSSIAN_WINDOW[k] * values[at];
      result[row * columns + column] = sum;
    }
  return result;
}

/** Averages blocks of 2 x 2 pixels. Drops the last row or column if their number is odd. A mean counts only if all four pixels count. */
function downsampleByTwo({ width, height, truth, predicted, counts }: Plane): Plane {
  const [columns, rows] = [width >> 1, height >> 1];
  const sums = (values: ArrayLike<number>): Float32Array => {
    const to = new Float32Array(columns * rows);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        const at = 2 * (row * width + column);
        to[row * columns + column] =
          values[at] + values[at + 1] + values[at + width] + values[at + width + 1];
      }
    return to;
  };
  const mean = (values: Float32Array) => sums(values).map((sum) => sum / 4);
  return {
    width: columns,
    height: rows,
    truth: mean(truth),
    predicted: mean(predicted),
    ...(counts && { counts: Uint8Array.from(sums(counts), (sum) => (sum === 4 ? 1 : 0)) }),
  };
}

/** Values rendered as 0 and as 255: reflectance, or an index from -1 to 1. */
export type DisplayRange = [low: number, high: number];

/** Maximum of the rendering. */
export const DISPLAY_PEAK = 255;

/** Fraction of the true values below the range, and above it. */
const CLIPPED_FRACTION = 0.02;

/**
 * Returns the 2nd and the 98th percentile of the true values of these patches, over all bands, with linear interpolation. All models and
 * baselines of a cell are scored with the range of its training patches. Undefined for patches with one value each, and if the two
 * percentiles are equal.
 */
export function displayRange({ targets, targetBands, targetMask }: Patches): DisplayRange | undefined {
  if (!targetMask) return undefined;
  const counting = new Float32Array(targets.length);
  let length = 0;
  for (let i = 0; i < targets.length; i++)
    if (targetMask[Math.floor(i / targetBands)] === 1) counting[length++] = targets[i];
  const values = counting.subarray(0, length).sort();
  const low = percentile(values, CLIPPED_FRACTION);
  const high = percentile(values, 1 - CLIPPED_FRACTION);
  return high > low ? [low, high] : undefined;
}

function percentile(sorted: Float32Array, share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(sorted.length - 1, below + 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/**
 * Maps values linearly from the display range of a cell to 0 to DISPLAY_PEAK, and clips them. NaN stays NaN. The values are not rounded:
 * rounding would change a PSNR of 30 dB by 0.01 dB, and images that differ by less than a grey level would count as equal.
 */
export function rendered(values: Float32Array, [low, high]: DisplayRange): Float32Array {
  return values.map((value) =>
    Math.min(DISPLAY_PEAK, Math.max(0, (DISPLAY_PEAK * (value - low)) / (high - low))),
  );
}

/**
 * Means over images, computed on their 8-bit rendering (`rendered`). An image is a patch or a tile with all its bands:
 * PSNR is over all bands together, the others are means over bands. A metric is absent if no image has it.
 */
export interface ImageScores {
  /** Decibels, with a peak of 255. Excludes images without any difference, whose PSNR is infinite. */
  psnr?: number;
  ssim?: number;
  /** Mean only over the images with the most scales, because values of different numbers of scales are not comparable. */
  msSsim?: MultiScale;
  /** Number of images in each mean. */
  images: Record<'psnr' | 'ssim' | 'msSsim', number>;
}

/** Scores one image, whose values are reflectances or indices. */
export function imageScores({ truth, predicted, ...shape }: ImagePair, range: DisplayRange): ImageScores {
  const shown = (planes: Float32Array[]) => planes.map((plane) => rendered(plane, range));
  const image = { ...shape, truth: shown(truth), predicted: shown(predicted) };
  const decibels = psnr(image, DISPLAY_PEAK);
  const similar = similarity(image, DISPLAY_PEAK);
  const hasPsnr = Number.isFinite(decibels);
  const hasSimilarity = Number.isFinite(similar?.ssim);
  return {
    ...(hasPsnr && { psnr: decibels! }),
    ...(hasSimilarity && similar!),
    images: { psnr: Number(hasPsnr), ssim: Number(hasSimilarity), msSsim: Number(hasSimilarity) },
  };
}

/** Averages scores weighted by their numbers of images, which equals the mean over all images. */
export function meanScores(scores: readonly ImageScores[]): ImageScores {
  const scales = scores.reduce((most, { msSsim }) => Math.max(most, msSsim?.scales ?? 0), 0);
  const psnr = meanOf(scores, ({ psnr, images }) => [psnr, images.psnr]);
  const ssim = meanOf(scores, ({ ssim, images }) => [ssim, images.ssim]);
  const msSsim = meanOf(scores, ({ msSsim, images }) =>
    msSsim?.scales === scales ? [msSsim.value, images.msSsim] : [undefined, 0],
  );
  return {
    ...(psnr.images > 0 && { psnr: psnr.mean }),
    ...(ssim.images > 0 && { ssim: ssim.mean }),
    ...(msSsim.images > 0 && { msSsim: { value: msSsim.mean, scales } }),
    images: { psnr: psnr.images, ssim: ssim.images, msSsim: msSsim.images },
  };
}

function meanOf(
  scores: readonly ImageScores[],
  of: (one: ImageScores) => [value: number | undefined, images: number],
): { mean: number; images: number } {
  let sum = 0;
  let images = 0;
  for (const [value, count] of scores.map(of)) {
    if (value === undefined) continue;
    sum += count * value;
    images += count;
  }
  return { mean: sum / images, images };
}
