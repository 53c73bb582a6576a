/** Replaces pixels of a date without data, under cloud or in shadow by pixels of other dates. Pure functions of masks and pixels. */
import type { PixelGrid } from '../grid/index.js';
import {
  type BandValidity,
  type DataType,
  Mask,
  maskHistogram,
  type PixelArray,
  type Window,
} from '../raster/index.js';
import type { RimPixels } from './tasks.js';

/** Group of a filled tile with the input of each pixel. */
export const PROVENANCE_GROUP = 'provenance';
/** Value of `provenance` for pixels without data. */
export const NO_SOURCE = 255;
/** Number of inputs that provenance can distinguish. */
export const MAX_INPUTS = NO_SOURCE;

/** A mask that is being filled, and the number of the input that gave each of its pixels. */
export interface Composite {
  mask: Uint8Array;
  provenance: Uint8Array;
  /** Number of pixels of each mask code. */
  codes: Uint32Array;
}

/** The base is input 0. */
export function startComposite(base: Uint8Array): Composite {
  const provenance = new Uint8Array(base.length);
  for (let i = 0; i < base.length; i++) if (base[i] === Mask.nodata) provenance[i] = NO_SOURCE;
  return { mask: base.slice(), codes: maskHistogram(base), provenance };
}

/**
 * Gives the pixels of the base at the rims of clouds, which no donor replaced, back their own codes. Returns the number of clear pixels of
 * the base, and how many of them were replaced.
 */
export function restoreRims({ mask, provenance, codes }: Composite, base: Uint8Array): RimPixels {
  const rims = { clear: 0, replaced: 0 };
  for (let i = 0; i < base.length; i++) {
    if (base[i] === Mask.clear) {
      rims.clear++;
      if (provenance[i] !== 0) rims.replaced++;
    }
    if (provenance[i] !== 0) continue;
    codes[mask[i]]--;
    codes[base[i]]++;
    mask[i] = base[i];
  }
  return rims;
}

/** `CAN_REPLACE[mine * 256 + theirs]` is 1 if a pixel of code `theirs` replaces one of code `mine`. */
const CAN_REPLACE = new Uint8Array(256 * 256);
for (const theirs of [Mask.clear, Mask.snow])
  for (const mine of [Mask.nodata, Mask.cloud, Mask.shadow, Mask.notAssessed])
    CAN_REPLACE[mine * 256 + theirs] = 1;
// Pixels that were not assessed are better than no data, but may be cloud.
CAN_REPLACE[Mask.nodata * 256 + Mask.notAssessed] = 1;

/**
 * Takes pixels of a donor, as input `number`, into the composite and returns how many. Clear pixels and snow replace no data, cloud,
 * shadow, and pixels that were not assessed; the latter replace no data only.
 */
export function fillFrom({ mask, provenance, codes }: Composite, donor: Uint8Array, number: number): number {
  let taken = 0;
  // Skips four clear pixels at a time.
  const words = new Uint32Array(mask.buffer, mask.byteOffset, mask.length >>> 2);
  for (let i = 0; i < mask.length; i++) {
    if (i % 4 === 0 && words[i >>> 2] === FOUR_CLEAR) {
      i += 3;
      continue;
    }
    if (CAN_REPLACE[mask[i] * 256 + donor[i]] === 0) continue;
    codes[mask[i]]--;
    codes[donor[i]]++;
    mask[i] = donor[i];
    provenance[i] = number;
    taken++;
  }
  return taken;
}

const FOUR_CLEAR = Mask.clear * 0x01010101;

/** The mask of a finished composite, in which clear pixels of donors have their own code. */
export function finishedMask({ mask, provenance }: Composite): Uint8Array {
  return mask.map((code, i) => (code === Mask.clear && provenance[i] !== 0 ? Mask.otherDate : code));
}

/**
 * The mask of a new tile, with the code 0 exactly where no band has data. Groups of other pixel sizes can have data at pixels that the mask
 * lacks: these are cloud or shadow if a pixel beside them is, and otherwise not assessed.
 */
export function codesOfData(codes: Uint8Array, some: BandValidity, { width, height }: PixelGrid): Uint8Array {
  return codes.map((code, at) => {
    if (some?.[at] === 0) return Mask.nodata;
    if (code !== Mask.nodata) return code;
    const around = new Set<number>();
    const [row, column] = [Math.floor(at / width), at % width];
    for (let r = Math.max(0, row - 1); r <= Math.min(height - 1, row + 1); r++)
      for (let c = Math.max(0, column - 1); c <= Math.min(width - 1, column + 1); c++)
        around.add(codes[r * width + c]!);
    return [Mask.cloud, Mask.shadow].find((doubtful) => around.has(doubtful)) ?? Mask.notAssessed;
  });
}

/**
 * Percent of the pixels with data that have values of other dates, in some band at least: snow and pixels that were not assessed count,
 * whose codes do not tell it. `provenance`: numbers of inputs, of which 0 is the tile's own date. Empty if there are none.
 */
export function otherDatesShare(codes: Uint8Array, provenance: Uint8Array[]): { otherDates?: number } {
  const isOther = new Uint8Array(codes.length);
  for (const plane of provenance)
    for (let i = 0; i < plane.length; i++) if (plane[i] !== 0 && plane[i] !== NO_SOURCE) isOther[i] = 1;
  let [all, others] = [0, 0];
  for (let i = 0; i < codes.length; i++) {
    if (codes[i] === Mask.nodata) continue;
    all++;
    if (codes[i] === Mask.otherDate || isOther[i] === 1) others++;
  }
  return others > 0 ? { otherDates: (100 * others) / all } : {};
}

/** Provenance at the size of a coarser group: each pixel gets the provenance of the fine pixel at its centre. */
export function resizeNearest(provenance: Uint8Array, fine: PixelGrid, coarse: PixelGrid): Uint8Array {
  if (fine.width === coarse.width && fine.height === coarse.height) return provenance;
  const out = new Uint8Array(coarse.width * coarse.height);
  for (let row = 0, to = 0; row < coarse.height; row++) {
    const from = Math.floor(((row + 0.5) * fine.height) / coarse.height) * fine.width;
    for (let column = 0; column < coarse.width; column++, to++)
      out[to] = provenance[from + Math.floor(((column + 0.5) * fine.width) / coarse.width)];
  }
  return out;
}

/** The positions of the pixels of each input, ascending. */
export function positionsOf(provenance: Uint8Array): Uint32Array[] {
  const counts = maskHistogram(provenance);
  const positions = Array.from(counts, (count) => new Uint32Array(count));
  const next = new Uint32Array(counts.length);
  for (let i = 0; i < provenance.length; i++) {
    const number = provenance[i];
    positions[number][next[number]++] = i;
  }
  return positions;
}

/** The smallest window that contains all positions. There must be at least one; they ascend. */
export function windowOf(positions: Uint32Array, width: number): Window {
  let [left, right] = [width, 0];
  for (let n = 0, start = 0; n < positions.length; n++) {
    while (positions[n] >= start + width) start += width;
    const column = positions[n] - start;
    if (column < left) left = column;
    if (column > right) right = column;
  }
  const row = Math.floor(positions[0] / width);
  const bottom = Math.floor(positions[positions.length - 1] / width);
  return { column: left, row, width: right - left + 1, height: bottom - row + 1 };
}

/** True for codes of pixels of a date whose single bands may take values of other dates. */
const isKept = (code: number) => code !== Mask.nodata && code !== Mask.cloud && code !== Mask.shadow;

/** The positions at which a band lacks data although the pixel is not replaced as a whole. `codes`: the mask at the size of the band. */
export function gapsOf(valid: BandValidity, codes: Uint8Array): Uint32Array {
  if (!valid) return new Uint32Array(0);
  const gaps: number[] = [];
  for (let i = 0; i < valid.length; i++) if (valid[i] === 0 && isKept(codes[i]!)) gaps.push(i);
  return Uint32Array.from(gaps);
}

/** Encoding of the values of a band: physical value = stored * scale + offset. */
export interface BandEncoding {
  dataType: DataType;
  scale: number;
  offset: number;
  /** Undefined if every value is data. */
  nodata: number | undefined;
}

/** Returns the conversion of stored values from one encoding to another; null if both are equal. */
export function conversion(from: BandEncoding, to: BandEncoding): ((stored: number) => number) | null {
  const sameNumbers = from.dataType === to.dataType && from.scale === to.scale && from.offset === to.offset;
  if (sameNumbers && Object.is(from.nodata, to.nodata)) return null;
  const [low, high] = TYPE_RANGES[to.dataType];
  const { nodata } = to;
  // A value that equals the nodata value moves to its neighbour.
  const beside = nodata === undefined ? 0 : nodata === low ? nodata + 1 : nodata - 1;
  return (stored) => {
    const exact = (stored * from.scale + from.offset - to.offset) / to.scale;
    if (to.dataType.startsWith('float')) return exact;
    const value = Math.min(high, Math.max(low, Math.round(exact)));
    return value === nodata ? beside : value;
  };
}

const TYPE_RANGES: Record<DataType, [low: number, high: number]> = {
  uint8: [0, 0xff],
  int8: [-0x80, 0x7f],
  uint16: [0, 0xffff],
  int16: [-0x8000, 0x7fff],
  uint32: [0, 0xffffffff],
  int32: [-0x80000000, 0x7fffffff],
  float32: [-Infinity, Infinity],
  float64: [-Infinity, Infinity],
};

/** A band of a new tile. */
export interface TargetBand {
  pixels: PixelArray;
  valid: BandValidity;
  /** The stored number of pixels without data. */
  fillValue: number;
}

/**
 * Copies the pixels of an input at these positions into a band that is `width` pixels wide. `pixels` are those of `window`, which contains
 * all positions. Pixels without data in this band become gaps of the band: they must not keep the value of a cloud.
 */
export function copyPixels(
  target: TargetBand,
  { positions, width }: { positions: Uint32Array; width: number },
  { pixels, window, valid }: { pixels: PixelArray; window: Window; valid: BandValidity },
  convert: ((stored: number) => number) | null,
): void {
  const out = target.pixels;
  // Start of the current row in `out` and in `pixels`.
  let start = window.row * width;
  let from = -window.column;
  for (let n = 0; n < positions.length; n++) {
    const to = positions[n];
    while (to >= start + width) {
      start += width;
      from += window.width;
    }
    const at = from + to - start;
    if (valid !== null && valid[at] === 0) {
      target.valid ??= new Uint8Array(out.length).fill(1);
      target.valid[to] = 0;
      out[to] = target.fillValue;
      continue;
    }
    out[to] = convert === null ? pixels[at]! : convert(pixels[at]!);
    if (target.valid !== null) target.valid[to] = 1;
  }
}
