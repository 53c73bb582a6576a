/**
 * Inner loops over pixels. Each data type gets its own copy of this module (see masks.ts), because V8's code for a
 * loop that has met more than four types of arrays is ten times slower.
 */
import type { PixelArray } from '../raster.js';

/**
 * Halves an image in both directions. A pixel becomes the mean of the pixels with data among four, or `nodataReplacement`
 * if the mean equals `nodata`.
 */
export function downsampleMean(
  source: PixelArray,
  width: number,
  height: number,
  nodata: number,
  out: PixelArray,
  fillValue: number,
  round: boolean,
  nodataReplacement: number,
): void {
  for (let row = 0, to = 0; row < height; row += 2) {
    const end = (row + 1) * width;
    // A pixel at the edge also stands for its missing neighbour, which does not change the mean.
    const below = row + 1 < height ? width : 0;
    for (let at = row * width; at < end; at += 2, to++) {
      const right = at + 1 < end ? at + 1 : at;
      const a = source[at];
      const b = source[right];
      const c = source[at + below];
      const d = source[right + below];
      let mean = (a + b + c + d) / 4;
      if (a === nodata || b === nodata || c === nodata || d === nodata || Number.isNaN(mean)) {
        let sum = 0;
        let count = 0;
        for (const value of [a, b, c, d]) {
          if (value === nodata || Number.isNaN(value)) continue;
          sum += value;
          count++;
        }
        if (count === 0) {
          out[to] = fillValue;
          continue;
        }
        mean = sum / count;
      }
      const value = round ? Math.floor(mean + 0.5) : mean;
      out[to] = value === nodata ? nodataReplacement : value;
    }
  }
}

/** `downsampleMean` with a mask that marks the pixels with data. Pixels without data become 0. */
export function downsampleMeanMasked(
  source: PixelArray,
  mask: Uint8Array,
  width: number,
  height: number,
  out: PixelArray,
  round: boolean,
): void {
  for (let row = 0, to = 0; row < height; row += 2) {
    const upper = row * width;
    const lower = Math.min(row + 1, height - 1) * width;
    for (let column = 0; column < width; column += 2, to++) {
      const right = Math.min(column + 1, width - 1);
      const a = upper + column;
      const b = upper + right;
      const c = lower + column;
      const d = lower + right;
      if ((mask[a] | mask[b] | mask[c] | mask[d]) === 0) continue;
      let sum = source[a] + source[b] + source[c] + source[d];
      let count = 4;
      if (mask[a] === 0 || mask[b] === 0 || mask[c] === 0 || mask[d] === 0) {
        sum = 0;
        count = 0;
        for (const at of [a, b, c, d]) {
          if (mask[at] === 0) continue;
          sum += source[at];
          count++;
        }
      }
      out[to] = round ? Math.floor(sum / count + 0.5) : sum / count;
    }
  }
}

/** Copies one sample of each of `count` pixels with `samples` interleaved values. */
export function deinterleave(
  source: PixelArray,
  from: number,
  samples: number,
  out: PixelArray,
  to: number,
  count: number,
): void {
  for (let i = 0; i < count; i++, from += samples) out[to + i] = source[from];
}

/**
 * Copies rows of `width` pixels. Rows are `stride` apart in the source and in `validity`, and `width` in `out`. Pixels become
 * `nodata` if their validity is 0.
 */
export function applyValidity(
  source: PixelArray,
  validity: PixelArray,
  start: number,
  stride: number,
  width: number,
  height: number,
  out: PixelArray,
  nodata: number,
): void {
  for (let row = 0, to = 0; row < height; row++) {
    const from = start + row * stride;
    for (let i = from; i < from + width; i++, to++) out[to] = validity[i] === 0 ? nodata : source[i];
  }
}

/** Copies pixels with data into a narrower type, rounded half up. Those that are `nodata` or NaN become `fillValue`. */
export function roundToType(source: PixelArray, nodata: number, out: PixelArray, fillValue: number): void {
  for (let i = 0; i < out.length; i++) {
    const value = source[i];
    out[i] = value === nodata || Number.isNaN(value) ? fillValue : Math.floor(value + 0.5);
  }
}

/** Reverts horizontal differences (TIFF 6.0, section 14) in place: `samples` interleaved values per pixel, `width` pixels per row. */
export function horizontalSums(values: PixelArray, width: number, height: number, samples: number): void {
  const rowLength = width * samples;
  if (samples === 1) {
    for (let row = 0; row < height; row++) {
      let at = row * rowLength;
      let sum = 0;
      for (const end = at + rowLength; at < end; at++) {
        sum = (sum + values[at]) | 0;
        values[at] = sum;
      }
    }
    return;
  }
  for (let row = 0; row < height; row++) {
    const start = row * rowLength;
    for (let at = start + samples; at < start + rowLength; at++) {
      values[at] = values[at] + values[at - samples];
    }
  }
}
