/** Passes over the pixels of one tile: extreme pixels, sums by the nearest centre, and random draws. Runs in worker threads. */

import { createHash } from 'node:crypto';
import { eachBlock, pixelNumber, type SpectrumFile, spectrumAt } from './blocks.js';
import { murmurFinalise } from './hash.js';
import { eachPanel, pixelFunction } from './methods/methods.js';
import { PANEL_PIXELS } from './methods/panel.js';
import { type FixedPointClassSums, TileClassSums } from './sums.js';

interface ExtremesTask {
  file: SpectrumFile;
  /** Rows x bands. The compared values are |weights (x - centre) + bias|. */
  weights: Float64Array;
  centre: Float64Array;
  bias: Float64Array;
}

export interface Extreme {
  /** Absolute value of the function. */
  value: number;
  /** Number of the pixel in the tile, row by row from the upper left. */
  pixel: number;
  /** Physical values of the bands. */
  spectrum: number[];
}

/** Returns one pixel per row, undefined if no pixel of the tile is clear and has data in every band. Ties go to the first pixel. */
export function tileExtremes({ file, weights, centre, bias }: ExtremesTask): (Extreme | undefined)[] {
  const method = pixelFunction({ kind: 'linear', weights, centre }, file);
  const found = new Array<Extreme | undefined>(method.rows).fill(undefined);
  eachPanel(file, method, (values, block, indexes) => {
    for (let r = 0; r < method.rows; r++)
      for (let i = 0; i < indexes.length; i++) {
        const value = Math.abs(values[r * PANEL_PIXELS + i] + bias[r]);
        const best = found[r];
        if (best && value < best.value) continue;
        const pixel = pixelNumber(block, indexes[i], file.width);
        // Blocks are not in the order of pixels.
        if (best && value === best.value && pixel > best.pixel) continue;
        found[r] = { value, pixel, spectrum: spectrumAt(block.bands, indexes[i], file) };
      }
  });
  return found;
}

/** Centres of clusters, as in the pixel method `euclidean`. */
interface Centres {
  /** Rows x bands. */
  centres: Float64Array;
  /** A spectrum near all pixels. */
  centre: Float64Array;
}

/**
 * Sums over the pixels nearest to each centre, by the number of the centre from 0: sums of all bands, followed by the sum of the squared
 * distances from the centre. Ties go to the first centre.
 */
export function nearestSums({
  file,
  centres,
  centre,
}: Centres & { file: SpectrumFile }): FixedPointClassSums {
  const { rows, evaluate } = pixelFunction({ kind: 'euclidean', centres, centre }, file);
  const sums = new TileClassSums({ scales: [...file.scales, 1], offsets: [...file.offsets, 0] });
  eachBlock(file, ({ bands, indexes }) => {
    const squares = new Float64Array(bands[0].length);
    const groups = Array.from({ length: rows }, () => new Int32Array(indexes.length));
    const counts = new Int32Array(rows);
    for (let from = 0; from < indexes.length; from += PANEL_PIXELS) {
      const distances = evaluate(bands, indexes, from);
      const count = Math.min(PANEL_PIXELS, indexes.length - from);
      for (let i = 0; i < count; i++) {
        let nearest = 0;
        for (let r = 1; r < rows; r++)
          if (distances[r * PANEL_PIXELS + i] < distances[nearest * PANEL_PIXELS + i]) nearest = r;
        const index = indexes[from + i];
        squares[index] = distances[nearest * PANEL_PIXELS + i] ** 2;
        groups[nearest][counts[nearest]++] = index;
      }
    }
    const all = [...bands, squares];
    for (const [r, group] of groups.entries())
      if (counts[r] > 0) sums.add(r, all, group.subarray(0, counts[r]));
  });
  return sums.fixedPoint();
}

interface DrawTask extends Centres {
  file: SpectrumFile;
  /** Differs for each tile and each draw. */
  key: string;
}

/** Squared distances below this share of the squared distance from the mean are rounding errors of float32. */
const DISTANCE_EPSILON = 1e-5;

/**
 * Draws a pixel at random, with a probability proportional to its squared distance from the nearest centre, as in k-means++ (Arthur and
 * Vassilvitskii 2007). Without centres all pixels have the same probability. Returns undefined if all pixels of the tile coincide with
 * centres.
 *
 * Each pixel has an exponentially distributed number E, and the pixel with the largest weight / E is drawn. Its probability is its share of
 * all weights (Efraimidis and Spirakis 2006). E depends only on the key and the number of the pixel, so the result depends neither on the
 * distribution of the tiles nor on the order in which they are read.
 */
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
