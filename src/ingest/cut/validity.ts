/** Which pixels of a tile hold data, over bands and over band groups of different pixel sizes. */
import type { PixelGrid } from '../../grid/index.js';
import { type BandValidity, isHyperspectral, type SpectralTags } from '../../raster/index.js';

/** The pixels of a data group that hold data, as bits, row by row; null stands for all pixels. */
export interface GroupValidity extends PixelGrid {
  /** Pixels with data in some band. */
  some: Uint8Array | null;
  /**
   * Pixels with data in every band. Bad bands of a spectrum do not count, and neither do bands that are empty in the cell, such as
   * the water vapour bands of most products.
   */
  every: Uint8Array | null;
}

/** Percent of the pixels of each band that hold data. */
export function validPercents(valid: readonly BandValidity[]): number[] {
  return valid.map((band) => (band ? (100 * countValid(band)) / band.length : 100));
}

/** The pixels with data in some band of a group, and in every one that counts (`GroupValidity`). */
export interface PixelValidity {
  some: BandValidity;
  every: BandValidity;
}

/** `valid` and `tags`: of each band, at least one. */
export function pixelValidity(valid: readonly BandValidity[], tags: readonly SpectralTags[]): PixelValidity {
  const isSpectrum = isHyperspectral(tags);
  const counted = valid.filter((band, b) => !isSpectrum || (tags[b]?.good !== false && holdsData(band)));
  // No good band has data in the cell.
  const every = counted.length > 0 ? validInEvery(counted) : new Uint8Array(valid[0]!.length);
  return { some: validInSome(valid), every };
}

export function packValidity({ width, height }: PixelGrid, { some, every }: PixelValidity): GroupValidity {
  return { width, height, some: packed(some), every: packed(every) };
}

/** A group that holds no data in the cell. */
export function emptyValidity({ width, height }: PixelGrid): GroupValidity {
  const none = new Uint8Array(Math.ceil((width * height) / 8));
  return { width, height, some: none, every: none };
}

/**
 * Joins the data groups of a tile at the pixels of its mask. `some`: pixels with data in some band of some group. `coverage`: percent of
 * the pixels with data in every band of every group. A pixel of another size counts where it contains the centre. `own`: a group with
 * the pixels of the mask.
 */
export function tileValidity(
  groups: readonly GroupValidity[],
  size: PixelGrid,
  own?: PixelValidity,
): { some: BandValidity; coverage: number } {
  const all = groups.map((group) => ({
    some: enlarged(group, group.some, size),
    every: enlarged(group, group.every, size),
  }));
  if (own) all.push(own);
  const every = validInEvery(all.map((group) => group.every));
  return {
    some: validInSome(all.map(({ some }) => some)),
    coverage: every ? (100 * countValid(every)) / every.length : 100,
  };
}

/** True if some pixel holds data. */
export const holdsData = (valid: BandValidity) => valid === null || valid.includes(1);

/** The pixels that hold data in some of the bands, at least one band. */
export function validInSome(bands: readonly BandValidity[]): BandValidity {
  if (bands.includes(null)) return null;
  const valid = joined(bands as Uint8Array[], 'some');
  return valid.includes(0) ? valid : null;
}

/** The pixels that hold data in every band. */
export function validInEvery(bands: readonly BandValidity[]): BandValidity {
  const incomplete = bands.filter((band) => band !== null);
  return incomplete.length === 0 ? null : joined(incomplete, 'every');
}

function joined([first, ...others]: readonly Uint8Array[], where: 'some' | 'every'): Uint8Array {
  if (others.length === 0) return first!;
  const valid = first!.slice();
  const words = wordsOf(valid);
  for (const other of others) {
    const otherWords = wordsOf(other);
    if (where === 'some') for (let i = 0; i < words.length; i++) words[i]! |= otherWords[i]!;
    else for (let i = 0; i < words.length; i++) words[i]! &= otherWords[i]!;
    for (let i = 4 * words.length; i < valid.length; i++)
      valid[i] = where === 'some' ? valid[i]! | other[i]! : valid[i]! & other[i]!;
  }
  return valid;
}

/** The number of pixels that hold data. */
export function countValid(valid: Uint8Array): number {
  let count = 0;
  // The product adds the four bytes of a word in its highest byte.
  for (const word of wordsOf(valid)) count += Math.imul(word, 0x01010101) >>> 24;
  for (let i = valid.length & ~3; i < valid.length; i++) count += valid[i]!;
  return count;
}

/** The pixels in fours, without a rest of up to three. */
function wordsOf(valid: Uint8Array): Uint32Array {
  const aligned = valid.byteOffset % 4 === 0 ? valid : valid.slice();
  return new Uint32Array(aligned.buffer, aligned.byteOffset, valid.length >> 2);
}

function packed(valid: BandValidity): Uint8Array | null {
  if (!valid?.includes(0)) return null;
  const bits = new Uint8Array(Math.ceil(valid.length / 8));
  for (let i = 0; i < valid.length; i++) bits[i >> 3]! |= valid[i]! << (i & 7);
  return bits;
}

function enlarged({ width, height }: PixelGrid, bits: Uint8Array | null, to: PixelGrid): BandValidity {
  if (!bits) return null;
  const valid = new Uint8Array(to.width * to.height);
  for (let row = 0, at = 0; row < to.height; row++) {
    const start = Math.floor(((row + 0.5) * height) / to.height) * width;
    for (let column = 0; column < to.width; column++, at++) {
      const i = start + Math.floor(((column + 0.5) * width) / to.width);
      valid[at] = (bits[i >> 3]! >> (i & 7)) & 1;
    }
  }
  return valid;
}
