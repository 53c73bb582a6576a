/** PSNR, SSIM and multi-scale SSIM of predicted images, and their means over images. */
import { DISPLAY_PEAK, type DisplayRange, rendered } from './evaluation-display-range.js';
import { type ImagePair, type MultiScale, psnr, similarity } from './evaluation-image-metrics.js';

/**
 * Means over images, computed on their 8-bit rendering (evaluation-display-range.ts). An image is a patch or a tile with all its bands:
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
