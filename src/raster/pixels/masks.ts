/** Valid pixels: mask codes of tiles, masks and alpha bands of files, and outlines. Loads one copy of the kernels for each data type. */

import { invalidImage } from '../errors.js';
import { type DataType, Mask, type PixelArray, type RasterHeader } from '../raster.js';
import { DATA_TYPES, dataTypeOf, isFloat } from './data-types.js';

/**
 * Calls `load` for each data type. `load` imports a module with the data type as the query of its URL, because a module imported under
 * different names is compiled once for each of them.
 */
export async function loadPerDataType<Kernels>(
  load: (dataType: DataType) => Promise<Kernels>,
): Promise<Record<DataType, Kernels>> {
  const loaded = DATA_TYPES.map(async (dataType) => [dataType, await load(dataType)]);
  return Object.fromEntries(await Promise.all(loaded));
}

export const typedKernels = await loadPerDataType<typeof import('./kernels.js')>(
  (dataType) => import(new URL(`./kernels.js?${dataType}`, import.meta.url).href),
);

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

/** The initial mask of `size` pixels: 255 (not assessed) for pixels with data, 0 for others. */
export function initialMask(valid: BandValidity, size: number): Uint8Array {
  const mask = new Uint8Array(size).fill(Mask.notAssessed);
  if (valid) for (let i = 0; i < size; i++) if (valid[i] === 0) mask[i] = Mask.nodata;
  return mask;
}

/** The pixels of a band that hold data: 1 for each of them, 0 for others; null if all pixels hold data. */
export type BandValidity = Uint8Array | null;

/** True if integers include a number. Searches 16-bit numbers as characters, four times as fast. */
export function includesNumber(band: PixelArray, value: number): boolean {
  if (band.BYTES_PER_ELEMENT !== 2 || Number.isNaN(value)) return band.includes(value);
  const bytes = Buffer.from(band.buffer as ArrayBuffer, band.byteOffset, band.byteLength);
  return bytes.includes(String.fromCharCode(value & 0xffff), 0, 'ucs2');
}

/** Finds the pixels of a band that are `hole` or NaN, or 0 in the band's mask. */
export function bandValidity(band: PixelArray, hole: number | undefined, mask?: PixelArray): BandValidity {
  // Most bands of integers have no hole; a search finds that out faster.
  const maybe = isFloat(dataTypeOf(band)) || (hole !== undefined && includesNumber(band, hole));
  if (!maybe && !mask?.includes(0)) return null;
  const valid = new Uint8Array(band.length).fill(1);
  let holes = 0;
  for (let i = 0; i < band.length; i++)
    if (band[i] === hole || Number.isNaN(band[i]) || mask?.[i] === 0) {
      valid[i] = 0;
      holes++;
    }
  return holes > 0 ? valid : null;
}

/** A distance as a share of the width and of the height of an image. */
interface ImageShare {
  x: number;
  y: number;
}

/**
 * A mask whose clear and not assessed pixels close to cloud or shadow have that code, because masks miss the thin edges of clouds. Close
 * is up to a share of the image, and at least one pixel; nothing changes if the share is 0.
 */
export function widenClouds(mask: Uint8Array, width: number, height: number, share: ImageShare): Uint8Array {
  if (share.x === 0) return mask;
  const radius = { x: Math.max(1, share.x * width), y: Math.max(1, share.y * height) };
  const wide = mask.slice();
  const isOf = (code: number, x: number, y: number) =>
    x < 0 || y < 0 || x >= width || y >= height || mask[y * width + x] === code;
  // Cloud comes last: it prevails where both are near.
  for (const code of [Mask.shadow, Mask.cloud]) {
    for (let at = 0; at < mask.length; at++) {
      if (mask[at] !== code) continue;
      const x = at % width;
      const y = (at - x) / width;
      // Only pixels at an edge reach others.
      if (isOf(code, x - 1, y) && isOf(code, x + 1, y) && isOf(code, x, y - 1) && isOf(code, x, y + 1))
        continue;
      for (let down = -Math.floor(radius.y); down <= radius.y; down++) {
        const row = y + down;
        if (row < 0 || row >= height) continue;
        const reach = Math.floor(radius.x * Math.sqrt(1 - (down / radius.y) ** 2));
        const end = Math.min(width - 1, x + reach);
        for (let column = Math.max(0, x - reach); column <= end; column++) {
          const near = row * width + column;
          if (mask[near] === Mask.clear || mask[near] === Mask.notAssessed) wide[near] = code;
        }
      }
    }
  }
  return wide;
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

/** Percent of cloud (code 2) among the assessed pixels (codes 1 to 6); null if no pixel is assessed. */
export function cloudCoverPercent(histogram: ArrayLike<number>): number | null {
  let assessed = 0;
  for (let code = Mask.clear; code <= Mask.otherDate; code++) assessed += histogram[code];
  return assessed === 0 ? null : (100 * histogram[Mask.cloud]) / assessed;
}

/** A band whose zeros mark pixels without data. */
export interface ValidityBand {
  header: RasterHeader;
  /** From 0. */
  index: number;
}

/** The nodata value of a file; undefined if it has none, or a mask, which takes precedence as in GDAL. */
export function effectiveNodata({ nodata, mask }: RasterHeader): number | undefined {
  return mask ? undefined : nodata;
}

/** A header whose alpha band is an ordinary band, because the product or the user declares it as data. */
export function treatAlphaAsData({ alpha: _, ...header }: RasterHeader): RasterHeader {
  return header;
}

/**
 * The band that marks the valid pixels of a band; undefined if the file has none. As in GDAL, a mask takes precedence over
 * alpha.
 */
export function findValidityBand(header: RasterHeader, index: number): ValidityBand | undefined {
  const { mask, alpha } = header;
  if (mask) return { header: mask, index: mask.bands === 1 ? 0 : index };
  return alpha === undefined || alpha === index ? undefined : { header, index: alpha };
}

/** Corner of a pixel: column 0 and row 0 are the upper left corner of the image. */
export type PixelCorner = [column: number, row: number];

/**
 * Convex hull of all pixels that are not 0, through their outer corners: a closed ring, counter-clockwise as seen with north
 * up (rows run south). Null if all pixels are 0. Monotone chain (Andrew 1979) over the outermost corners of each row, which
 * are already sorted.
 */
export function convexHull(mask: Uint8Array, width: number, height: number): PixelCorner[] | null {
  const left: PixelCorner[] = [];
  const right: PixelCorner[] = [];
  for (let row = 0; row < height; row++) {
    const start = row * width;
    let first = 0;
    while (first < width && mask[start + first] === 0) first++;
    if (first === width) continue;
    let end = width;
    while (mask[start + end - 1] === 0) end--;
    left.push([first, row], [first, row + 1]);
    right.push([end, row], [end, row + 1]);
  }
  if (left.length === 0) return null;
  // Down the left side and up the right side.
  const ring = [...monotoneChain(left), ...monotoneChain(right.reverse())];
  return [...ring, ring[0]];
}

/** Keeps the points of one side of the hull, which always turns left (rows run south). */
function monotoneChain(points: PixelCorner[]): PixelCorner[] {
  const kept: PixelCorner[] = [];
  for (const point of points) {
    while (kept.length >= 2 && crossProduct(kept[kept.length - 2], kept[kept.length - 1], point) >= 0)
      kept.pop();
    kept.push(point);
  }
  return kept;
}

/** Negative for a turn to the left (rows run south); 0 for a straight line. */
function crossProduct(a: PixelCorner, b: PixelCorner, c: PixelCorner): number {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}
