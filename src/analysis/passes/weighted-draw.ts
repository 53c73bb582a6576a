/**
 * Draws a pixel at random, with a chance in proportion to its squared distance from the nearest of some centres, as k-means++ does (Arthur
 * and Vassilvitskii 2007). Runs in worker threads.
 *
 * Each pixel has a number E of its own with the exponential distribution, and the pixel of the largest weight / E is drawn: its chance is
 * its share of all weights (Efraimidis and Spirakis 2006). E follows from the key, the tile and the number of the pixel, so the same pixel
 * is drawn wherever the tiles are and in whichever order they are read.
 */
import { createHash } from 'node:crypto';
import { murmurFinalise } from '../numeric/hash.js';
import { pixelFunction } from '../pixel-methods/pixel-methods.js';
import { PANEL_PIXELS } from '../pixel-methods/pixel-panel.js';
import { eachBlock, type SpectrumFile } from '../tile-reading/spectrum-blocks.js';
import type { Centres } from './nearest-centres.js';
import type { Extreme } from './tile-extremes.js';

export interface DrawTask extends Centres {
  kind: 'draw';
  file: SpectrumFile;
  /** Another text for each tile and each drawing. */
  key: string;
}

/** Squared distances below this share of the squared distance from the mean are rounding errors of float32. */
const DISTANCE_EPSILON = 1e-5;

/** Undefined if all pixels of the tile lie on centres. Without centres all pixels have the same chance. */
export function drawWeightedPixel({ file, centres, centre, key }: DrawTask): Extreme | undefined {
  const { rows, evaluate } = pixelFunction(
    { kind: 'euclidean', centres: Float64Array.of(...centre, ...centres), centre },
    file,
  );
  const weightOf = (distances: ArrayLike<number>, i: number) => {
    if (rows === 1) return 1;
    let nearest = Number.POSITIVE_INFINITY;
    for (let r = 1; r < rows; r++) nearest = Math.min(nearest, distances[r * PANEL_PIXELS + i]!);
    const square = nearest ** 2;
    return square > DISTANCE_EPSILON * distances[i]! ** 2 ? square : 0;
  };
  const exponential = exponentials(key);
  let best: Extreme | undefined;
  eachBlock(file, ({ column, row, stride, bands, indexes }) => {
    for (let from = 0; from < indexes.length; from += PANEL_PIXELS) {
      const distances = evaluate(bands, indexes, from);
      const count = Math.min(PANEL_PIXELS, indexes.length - from);
      for (let i = 0; i < count; i++) {
        const index = indexes[from + i]!;
        const pixel = (row + Math.floor(index / stride)) * file.width + column + (index % stride);
        const value = weightOf(distances, i) / exponential(pixel);
        if (value === 0 || (best && (value < best.value || (value === best.value && pixel > best.pixel))))
          continue;
        const spectrum = bands.map((band, b) => band[index]! * file.scales[b]! + file.offsets[b]!);
        best = { value, pixel, spectrum };
      }
    }
  });
  return best;
}

/** Numbers with the exponential distribution of mean 1, for whole numbers below 2^32. */
function exponentials(key: string): (number: number) => number {
  const digest = createHash('sha256').update(key).digest();
  const [a, b] = [digest.readUInt32LE(0), digest.readUInt32LE(4)] as const;
  return (number) => {
    const [high, low] = [murmurFinalise(number ^ a) >>> 6, murmurFinalise(number ^ b) >>> 6] as const;
    return -Math.log((high * 2 ** 26 + low + 0.5) / 2 ** 52);
  };
}
