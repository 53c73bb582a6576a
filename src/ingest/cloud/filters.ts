/**
 * Resamples a band to another grid of the same extent by the nearest pixel, and filters grids over disks. The disk of radius r contains the
 * cells with dx^2 + dy^2 <= r^2. Grids are in row order.
 */

export interface BandSize {
  width: number;
  height: number;
}

export interface BandPixels extends BandSize {
  /** Row order, top row first. */
  pixels: Float32Array;
}

/** The value of the pixel that contains the centre of each of columns x rows cells. */
export function sampleNearest<Pixels extends Float32Array | Uint8Array>(
  { pixels, width, height }: { pixels: Pixels; width: number; height: number },
  columns: number,
  rows: number,
): Pixels {
  if (width === columns && height === rows) return pixels;
  const out = new (pixels.constructor as new (length: number) => Pixels)(columns * rows);
  for (let row = 0, to = 0; row < rows; row++) {
    const from = Math.floor(((row + 0.5) * height) / rows) * width;
    for (let column = 0; column < columns; column++, to++)
      out[to] = pixels[from + Math.floor(((column + 0.5) * width) / columns)];
  }
  return out;
}

/** Mean of the numbers in the disk; NaN if there is none. Cells beyond the edge do not count. */
export function meanOverDisk(
  values: Float32Array,
  width: number,
  height: number,
  radius: number,
): Float32Array {
  const out = new Float32Array(values.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let sum = 0;
      let count = 0;
      forEachInDisk(x, y, width, height, radius, (at) => {
        if (Number.isNaN(values[at])) return;
        sum += values[at];
        count++;
      });
      out[y * width + x] = sum / count;
    }
  }
  return out;
}

/** 1 if any cell of the disk is not 0. */
export function dilate(flags: Uint8Array, width: number, height: number, radius: number): Uint8Array {
  const out = new Uint8Array(flags.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (flags[y * width + x] === 0) continue;
      forEachInDisk(x, y, width, height, radius, (at) => {
        out[at] = 1;
      });
    }
  }
  return out;
}

export function forEachInDisk(
  x: number,
  y: number,
  width: number,
  height: number,
  radius: number,
  visit: (at: number) => void,
): void {
  for (let row = Math.max(0, y - radius); row <= Math.min(height - 1, y + radius); row++) {
    const reach = Math.floor(Math.sqrt(radius ** 2 - (row - y) ** 2));
    const end = Math.min(width - 1, x + reach);
    for (let column = Math.max(0, x - reach); column <= end; column++) visit(row * width + column);
  }
}
