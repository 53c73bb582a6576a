/** Assigns the pixels of a tile to the centres nearest to their spectra. Runs in worker threads. */

import { PANEL_PIXELS, pixelFunction } from '../pixel-methods/index.js';
import { type FixedPointClassSums, TileClassSums } from '../reproducible-sums/index.js';
import { eachBlock, type SpectrumFile } from '../spectrum-reading/index.js';

/** Centres of clusters, as in the pixel method `euclidean`. */
export interface Centres {
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
