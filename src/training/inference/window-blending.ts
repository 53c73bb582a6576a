/** Covers an image with windows that overlap, and joins what was made of them without seams. */

export interface Windows {
  /** Pixels of a window's side. */
  size: number;
  /** North-western pixels. Windows of an image that is smaller reach beyond it. */
  origins: { row: number; column: number }[];
}

/** At least `overlap` pixels of neighbouring windows are the same. The last ones end at the image's edge. */
export function slidingWindows(width: number, height: number, size: number, overlap: number): Windows {
  const starts = (length: number) => {
    const found: number[] = [];
    for (let at = 0; at + size < length; at += size - overlap) found.push(at);
    return [...found, Math.max(0, length - size)];
  };
  const columns = starts(width);
  return {
    size,
    origins: starts(height).flatMap((row) => columns.map((column) => ({ row, column }))),
  };
}

/**
 * Means of windows where these overlap, each pixel with a weight that falls towards its window's edges. Invariant: `sums` of a
 * pixel are weighted values of all windows so far, `weights` their weights.
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

  /** `valueAt` gives the window's value of a plane at its pixel. */
  add(
    { row, column }: Windows['origins'][number],
    size: number,
    valueAt: (pixel: number, plane: number) => number,
  ): void {
    const rows = Math.min(size, this.height - row);
    const columns = Math.min(size, this.width - column);
    for (let y = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++) {
        const at = (row + y) * this.width + column + x;
        const weight = Math.min(y + 1, size - y) * Math.min(x + 1, size - x);
        this.weights[at] += weight;
        for (const [p, sums] of this.sums.entries()) sums[at] += weight * valueAt(y * size + x, p);
      }
    }
  }

  /** NaN where no window was. */
  planes(): Float32Array[] {
    return this.sums.map((sums) => sums.map((sum, at) => sum / this.weights[at]));
  }
}
