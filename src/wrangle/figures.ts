/** How much of a group holds data. */
import type { PixelArray } from '../raster/index.js';

export interface Figures {
  /** Percent of the pixels that hold data, of each band. */
  validPercent: number[];
  /** Percent of the pixels that hold data in every band. */
  coverage: number;
}

/** `hole` is the stored value for no data; where there is none, a pixel holds data where `seen` is not 0. */
export function validOf(bands: PixelArray[], hole: number | undefined, seen: Uint8Array): Figures {
  const size = seen.length;
  const isHole =
    hole === undefined
      ? (_: PixelArray, i: number) => seen[i] === 0
      : (band: PixelArray, i: number) => band[i] === hole || Number.isNaN(band[i]);
  const holes = bands.map((band) => {
    let count = 0;
    for (let i = 0; i < size; i++) if (isHole(band, i)) count++;
    return count;
  });
  const some = bands.filter((_, b) => holes[b] > 0);
  let missing = Math.max(...holes);
  if (some.length > 1) {
    missing = 0;
    for (let i = 0; i < size; i++) if (some.some((band) => isHole(band, i))) missing++;
  }
  return {
    validPercent: holes.map((count) => (100 * (size - count)) / size),
    coverage: (100 * (size - missing)) / size,
  };
}
