/** How much of a group holds data. */
import type { PixelArray } from '../raster/index.js';

/** Percent of the pixels: of each band, and of those that hold data in every band. `hole` undefined: all are data. */
export function validOf(
  bands: PixelArray[],
  hole: number | undefined,
): { validPercent: number[]; coverage: number } {
  const size = bands[0].length;
  const isHole = (value: number) => value === hole || Number.isNaN(value);
  const holes = bands.map((band) => {
    if (hole === undefined) return 0;
    let count = 0;
    for (let i = 0; i < size; i++) if (isHole(band[i])) count++;
    return count;
  });
  const validPercent = holes.map((count) => (100 * (size - count)) / size);
  const some = bands.filter((_, b) => holes[b] > 0);
  let missing = 0;
  if (some.length === 1) missing = Math.max(...holes);
  else if (some.length > 1)
    for (let i = 0; i < size; i++) if (some.some((band) => isHole(band[i]))) missing++;
  return { validPercent, coverage: (100 * (size - missing)) / size };
}
