/**
 * TIFF predictors: neighbouring pixels differ little, so differences compress better than values. 2 is horizontal differencing
 * of integers (TIFF 6.0, section 14; pixels/pixel-kernels.ts has its loops), 3 is for floating point numbers (Adobe Photoshop TIFF
 * note 3). Values are in the byte order of this machine, which is little-endian on all common hardware that runs Node.
 */

import { typedKernels, UNSIGNED_BY_SIZE } from '../pixels/index.js';
import type { PixelArray } from '../raster-types.js';

/**
 * Reverts horizontal differences in place: `samples` interleaved values per pixel, `width` pixels per row. Signed values wrap
 * like unsigned ones.
 */
export function decodeHorizontalPredictor(
  values: PixelArray,
  width: number,
  height: number,
  samples: number,
): void {
  typedKernels[UNSIGNED_BY_SIZE[values.BYTES_PER_ELEMENT]].horizontalSums(values, width, height, samples);
}

/** Reverts horizontal differences of 64-bit values in place: `samples` interleaved values per pixel, `width` pixels per row. */
export function decodeHorizontalPredictor64(
  values: BigUint64Array,
  width: number,
  height: number,
  samples: number,
): void {
  const rowLength = width * samples;
  for (let start = 0; start < rowLength * height; start += rowLength)
    for (let at = start + samples; at < start + rowLength; at++) values[at] += values[at - samples];
}

/**
 * Floating point predictor of one row: groups the bytes of `width` little-endian values of `size` bytes by significance,
 * highest first, and then takes the differences of the row of bytes.
 */
export function encodeFloatPredictor(row: Uint8Array, width: number, size: number, out: Uint8Array): void {
  for (let plane = 0; plane < size; plane++) {
    const byte = size - 1 - plane;
    for (let i = 0; i < width; i++) out[plane * width + i] = row[i * size + byte];
  }
  for (let i = width * size - 1; i > 0; i--) out[i] = out[i] - out[i - 1];
}

/** Reverts `encodeFloatPredictor` for each row; `width` counts values (pixels times interleaved samples). */
export function decodeFloatPredictor(
  bytes: Uint8Array,
  width: number,
  height: number,
  samples: number,
  size: number,
): void {
  const values = width * samples;
  const rowBytes = values * size;
  const row = new Uint8Array(rowBytes);
  for (let y = 0; y < height; y++) {
    const start = y * rowBytes;
    for (let i = start + samples; i < start + rowBytes; i++) bytes[i] = bytes[i] + bytes[i - samples];
    row.set(bytes.subarray(start, start + rowBytes));
    for (let plane = 0; plane < size; plane++) {
      const byte = size - 1 - plane;
      for (let i = 0; i < values; i++) bytes[start + i * size + byte] = row[plane * values + i];
    }
  }
}
