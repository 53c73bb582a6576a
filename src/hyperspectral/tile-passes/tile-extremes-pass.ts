/** Finds the pixel of a tile at which each affine function of the spectrum is largest. Runs in worker threads. */

import { eachPanel, PANEL_PIXELS, pixelFunction } from '../pixel-methods/index.js';
import { pixelNumber, type SpectrumFile, spectrumAt } from '../spectrum-reading/index.js';

export interface ExtremesTask {
  file: SpectrumFile;
  /** Rows x bands. The compared values are |weights (x - centre) + bias|. */
  weights: Float64Array;
  centre: Float64Array;
  bias: Float64Array;
}

export interface Extreme {
  /** Absolute value of the function. */
  value: number;
  /** Number of the pixel in the tile, row by row from the upper left. */
  pixel: number;
  /** Physical values of the bands. */
  spectrum: number[];
}

/** Returns one pixel per row, undefined if no pixel of the tile is clear and has data in every band. Ties go to the first pixel. */
export function tileExtremes({ file, weights, centre, bias }: ExtremesTask): (Extreme | undefined)[] {
  const method = pixelFunction({ kind: 'linear', weights, centre }, file);
  const found = new Array<Extreme | undefined>(method.rows).fill(undefined);
  eachPanel(file, method, (values, block, indexes) => {
    for (let r = 0; r < method.rows; r++)
      for (let i = 0; i < indexes.length; i++) {
        const value = Math.abs(values[r * PANEL_PIXELS + i] + bias[r]);
        const best = found[r];
        if (best && value < best.value) continue;
        const pixel = pixelNumber(block, indexes[i], file.width);
        // Blocks are not in the order of pixels.
        if (best && value === best.value && pixel > best.pixel) continue;
        found[r] = { value, pixel, spectrum: spectrumAt(block.bands, indexes[i], file) };
      }
  });
  return found;
}
