/** How the pixel of a mosaic is chosen among the tiles of a cell. Names are those of titiler's `pixel_selection`. */

import { medianOfSorted } from '../../utils/median.js';

/** `first`: the least cloudy clear tile. `median`: the median of each plane over several clear tiles, which hides borders between dates. */
export const PIXEL_SELECTIONS = ['first', 'median'] as const;

export type PixelSelection = (typeof PIXEL_SELECTIONS)[number];

/** Maximum number of tiles of a cell in a median, the least cloudy first. */
export const MAX_MEDIAN_TILES = 9;

/** The median of each pixel over the layers that have a value there; NaN if none has. An even number of values has the mean of two. */
export function medianOfLayers(layers: readonly Float64Array[], length: number): Float64Array {
  const medians = new Float64Array(length).fill(NaN);
  const values = new Float64Array(layers.length);
  for (let i = 0; i < length; i++) {
    let count = 0;
    for (const layer of layers) if (!Number.isNaN(layer[i])) values[count++] = layer[i]!;
    if (count === 0) continue;
    medians[i] = medianOfSorted(values.subarray(0, count).sort());
  }
  return medians;
}
