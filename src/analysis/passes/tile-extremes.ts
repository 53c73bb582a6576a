/** The pixel of a tile at which each of some affine functions of the spectrum is largest. Runs in worker threads. */

import { pixelFunction } from '../pixel-methods/pixel-methods.js';
import { PANEL_PIXELS } from '../pixel-methods/pixel-panel.js';
import { eachBlock, type SpectrumFile } from '../tile-reading/spectrum-blocks.js';

export interface ExtremesTask {
  kind: 'extremes';
  file: SpectrumFile;
  /** |weights (x - centre) + bias|, rows x bands, is what is compared. */
  weights: Float64Array;
  centre: Float64Array;
  bias: Float64Array;
}

export interface Extreme {
  /** Its size. */
  value: number;
  /** Number of the pixel in the tile, row by row from the upper left. */
  pixel: number;
  /** Physical values of the bands. */
  spectrum: number[];
}

/** One for each row; undefined if the tile has no clear pixel that holds data in every band. Of equal ones the first pixel. */
export function tileExtremes({ file, weights, centre, bias }: ExtremesTask): (Extreme | undefined)[] {
  const { rows, evaluate } = pixelFunction({ kind: 'linear', weights, centre }, file);
  const found: (Extreme | undefined)[] = Array.from({ length: rows }, () => undefined);
  eachBlock(file, ({ column, row, stride, bands, indexes }) => {
    for (let from = 0; from < indexes.length; from += PANEL_PIXELS) {
      const values = evaluate(bands, indexes, from);
      const count = Math.min(PANEL_PIXELS, indexes.length - from);
      for (let r = 0; r < rows; r++)
        for (let i = 0; i < count; i++) {
          const value = Math.abs(values[r * PANEL_PIXELS + i]! + bias[r]!);
          const best = found[r];
          if (best && value < best.value) continue;
          const index = indexes[from + i]!;
          const pixel = (row + Math.floor(index / stride)) * file.width + column + (index % stride);
          // Blocks do not come in the order of pixels.
          if (best && value === best.value && pixel > best.pixel) continue;
          const spectrum = bands.map((band, b) => band[index]! * file.scales[b]! + file.offsets[b]!);
          found[r] = { value, pixel, spectrum };
        }
    }
  });
  return found;
}
