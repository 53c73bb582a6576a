/** The group `mask` of a tile: codes for clouds, and statistics of them. All percentages are 0-100. */
import { invalidImage } from '../errors.js';
import { Mask } from '../raster-types.js';

/**
 * Fills the pixels of a mask that are not assessed (255) by quality codes, through a table with an entry for every code: 256
 * for uint8, 65,536 for uint16. A 255 in the table, or a 0 in `known`, leaves the pixel to the next quality band.
 */
export function applyQualityLookup(
  quality: Uint8Array | Uint16Array,
  known: Uint8Array,
  table: Uint8Array,
  mask: Uint8Array,
): void {
  if (table.length !== 2 ** (8 * quality.BYTES_PER_ELEMENT) || mask.length !== quality.length) {
    throw invalidImage(
      `a mask of ${mask.length} pixels from ${quality.length} and a table of ${table.length} codes`,
    );
  }
  for (let i = 0; i < quality.length; i++)
    if (known[i] === 1 && mask[i] === Mask.notAssessed) mask[i] = table[quality[i]];
}

/** The initial mask: 255 (not assessed) for pixels with data (1 in `valid`), 0 for others. */
export function initialMask(valid: Uint8Array): Uint8Array {
  const mask = new Uint8Array(valid.length);
  for (let i = 0; i < mask.length; i++) mask[i] = valid[i] * Mask.notAssessed;
  return mask;
}

/** Number of pixels of each code: 256 entries. */
export function maskHistogram(mask: Uint8Array): Uint32Array {
  const histogram = new Uint32Array(256);
  for (let i = 0; i < mask.length; i++) histogram[mask[i]]++;
  return histogram;
}

/** Percent of pixels that hold data (codes other than 0). 0 for an empty mask. */
export function coveragePercent(histogram: Uint32Array): number {
  const size = histogram.reduce((sum, count) => sum + count, 0);
  return size === 0 ? 0 : (100 * (size - histogram[0])) / size;
}

/** Percent of cloud (code 2) among the assessed pixels (codes 1 to 5); null if no pixel is assessed. */
export function cloudCoverPercent(histogram: ArrayLike<number>): number | null {
  let assessed = 0;
  for (let code = Mask.clear; code <= Mask.filled; code++) assessed += histogram[code];
  return assessed === 0 ? null : (100 * histogram[Mask.cloud]) / assessed;
}
