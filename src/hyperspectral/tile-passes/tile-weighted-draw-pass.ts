/**
 * Draws a pixel at random, with a probability proportional to its squared distance from the nearest centre, as in k-means++ (Arthur and
 * Vassilvitskii 2007). Runs in worker threads.
 *
 * Each pixel has an exponentially distributed number E, and the pixel with the largest weight / E is drawn. Its probability is its share of
 * all weights (Efraimidis and Spirakis 2006). E depends only on the key and the number of the pixel, so the result depends neither on the
 * distribution of the tiles nor on the order in which they are read.
 */
import { createHash } from 'node:crypto';
import { murmurFinalise } from '../numeric/index.js';
import { eachPanel, PANEL_PIXELS, pixelFunction } from '../pixel-methods/index.js';
import { pixelNumber, type SpectrumFile, spectrumAt } from '../spectrum-reading/index.js';
import type { Extreme } from './tile-extremes-pass.js';
import type { Centres } from './tile-nearest-centres-pass.js';

export interface DrawTask extends Centres {
  file: SpectrumFile;
  /** Differs for each tile and each draw. */
  key: string;
}

/** Squared distances below this share of the squared distance from the mean are rounding errors of float32. */
const DISTANCE_EPSILON = 1e-5;

/** Returns undefined if all pixels of the tile coincide with centres. Without centres all pixels have the same probability. */
export function drawWeightedPixel({ file, centres, centre, key }: DrawTask): Extreme | undefined {
  const method = pixelFunction(
    { kind: 'euclidean', centres: Float64Array.of(...centre, ...centres), centre },
    file,
  );
  const weightOf = (distances: ArrayLike<number>, i: number) => {
    if (method.rows === 1) return 1;
    let nearest = Number.POSITIVE_INFINITY;
    for (let r = 1; r < method.rows; r++) nearest = Math.min(nearest, distances[r * PANEL_PIXELS + i]);
    const square = nearest ** 2;
    return square > DISTANCE_EPSILON * distances[i] ** 2 ? square : 0;
  };
  const exponential = exponentials(key);
  let best: Extreme | undefined;
  eachPanel(file, method, (distances, block, indexes) => {
    for (let i = 0; i < indexes.length; i++) {
      const pixel = pixelNumber(block, indexes[i], file.width);
      const value = weightOf(distances, i) / exponential(pixel);
      if (value === 0 || (best && (value < best.value || (value === best.value && pixel > best.pixel))))
        continue;
      best = { value, pixel, spectrum: spectrumAt(block.bands, indexes[i], file) };
    }
  });
  return best;
}

/** Maps integers below 2^32 to exponentially distributed numbers with mean 1. */
function exponentials(key: string): (number: number) => number {
  const digest = createHash('sha256').update(key).digest();
  const a = digest.readUInt32LE(0);
  const b = digest.readUInt32LE(4);
  return (number) => {
    const high = murmurFinalise(number ^ a) >>> 6;
    const low = murmurFinalise(number ^ b) >>> 6;
    return -Math.log((high * 2 ** 26 + low + 0.5) / 2 ** 52);
  };
}
