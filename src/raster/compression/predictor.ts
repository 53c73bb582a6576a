/**
 * TIFF predictors: neighbouring pixels differ little, so differences compress better than values.
 * 2 = horizontal differencing of integers (TIFF 6.0, section 14; its loops are among the kernels); 3 = floating point (Adobe
 * Photoshop TIFF note 3).
 * Values are in the byte order of this machine, which is little-endian wherever Node runs on common hardware.
 */

import { typedKernels, UNSIGNED_BY_SIZE } from '../pixels/index.js';
import { prefixSumRows } from './deflate/index.js';

/** Undoes horizontal differences in place: `samples` interleaved values a pixel, `width` pixels a row. Signed ones wrap alike. */
export function decodeHorizontalPredictor(
  values: Uint8Array | Uint16Array | Uint32Array,
  width: number,
  height: number,
  samples: number,
): void {
  if (samples === 1 && prefixSumRows(values, width)) return;
  typedKernels[UNSIGNED_BY_SIZE[values.BYTES_PER_ELEMENT]].horizontalSums(values, width, height, samples);
}

/** Undoes horizontal differences of 64-bit values in place: `samples` interleaved values a pixel, `width` pixels a row. */
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
 * Floating point predictor of one row: the bytes of `width` little-endian values of `size` bytes are gathered by
 * significance, highest first, and the row of bytes is differenced.
 */
export function encodeFloatPredictor(row: Uint8Array, width: number, size: number, out: Uint8Array): void {
  for (let plane = 0; plane < size; plane++) {
    const byte = size - 1 - plane;
    for (let i = 0; i < width; i++) out[plane * width + i] = row[i * size + byte];
  }
  for (let i = width * size - 1; i > 0; i--) out[i] = out[i] - out[i - 1];
}

/** Undoes `encodeFloatPredictor` for each row; `width` counts values (pixels times interleaved samples). */
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
