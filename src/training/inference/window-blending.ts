/** Covers an image with overlapping windows, and blends their predictions without seams. */

import type { PixelBox } from './halo-image.js';

/** North-western pixel of a window. */
export interface WindowOrigin {
  row: number;
  column: number;
}

/**
 * Returns windows of which neighbours share at least `overlap` pixels. The last windows end at the edge of the image; if the image is
 * smaller than a window, windows extend beyond it.
 */
export function slidingWindows(width: number, height: number, size: number, overlap: number): WindowOrigin[] {
  const starts = (length: number) => {
    const found: number[] = [];
    for (let at = 0; at + size < length; at += size - overlap) found.push(at);
    return [...found, Math.max(0, length - size)];
  };
  const columns = starts(width);
  return starts(height).flatMap((row) => columns.map((column) => ({ row, column })));
}

/**
 * Returns all windows that overlap a part of an image and begin at multiples of `stride` in the grid. `offset`: the position of the image's
 * north-western pixel in the grid.
 */
export function latticeWindows(
  { column, row, width, height }: PixelBox,
  size: number,
  stride: number,
  offset: { column: number; row: number },
): WindowOrigin[] {
  const starts = (from: number, count: number, shift: number) => {
    const found: number[] = [];
    const first = Math.floor((from + shift - size) / stride + 1) * stride - shift;
    for (let at = first; at < from + count; at += stride) found.push(at);
    return found;
  };
  const columns = starts(column, width, offset.column);
  return starts(row, height, offset.row).flatMap((row) => columns.map((column) => ({ row, column })));
}

/**
 * Averages overlapping windows. The weight of pixel x of a window of n pixels is min(x + 1/2, n - x - 1/2) along each axis: the distance
 * of its centre from the nearest edge. The weights of windows that overlap by half sum to n / 2 everywhere, so that the average of
 * windows with one value each is linear between the centres of the windows. Invariant: for each pixel, `sums` has the
 * weighted sum of all windows so far, and `weights` the sum of their weights.
 */
export class WindowBlender {
  private readonly sums: Float32Array[];
  private readonly weights: Float32Array;

  constructor(
    private readonly width: number,
    private readonly height: number,
    planes: number,
  ) {
    this.weights = new Float32Array(width * height);
    this.sums = Array.from({ length: planes }, () => new Float32Array(width * height));
  }

  /** Adds a window, which may extend beyond the image. `valueAt` returns the value of a plane at a pixel of the window. */
  add({ row, column }: WindowOrigin, size: number, valueAt: (pixel: number, plane: number) => number): void {
    const { sums, weights } = this;
    const [bottom, right] = [Math.min(size, this.height - row), Math.min(size, this.width - column)];
    for (let y = Math.max(0, -row); y < bottom; y++) {
      for (let x = Math.max(0, -column); x < right; x++) {
        const at = (row + y) * this.width + column + x;
        const weight = Math.min(y + 0.5, size - y - 0.5) * Math.min(x + 0.5, size - x - 0.5);
        weights[at] += weight;
        for (let p = 0; p < sums.length; p++) sums[p][at] += weight * valueAt(y * size + x, p);
      }
    }
  }

  /** Returns the averages, NaN where there was no window. */
  planes(): Float32Array[] {
    return this.sums.map((sums) => sums.map((sum, at) => sum / this.weights[at]));
  }
}
