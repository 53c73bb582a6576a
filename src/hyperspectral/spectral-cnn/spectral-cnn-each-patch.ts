/** Reads the pixels of a tile with the pixels around them, row by row. Runs in child processes. */

import { CUBE_BLOCK_SIDE } from '../../raster/index.js';
import { eachPixelWithNeighbours, type Neighbour, type SpectrumFile } from '../spectrum-reading/index.js';

/**
 * Visits each pixel of a tile that has a spectrum, with the physical values of the side x side pixels around it, row by row, which are
 * valid until the next call. `missing`: values for pixels without a spectrum. Memory holds the spectra of some rows. Throws
 * TW_IMAGERY_TILE_FILE.
 */
export function eachPatch(
  file: SpectrumFile,
  around: readonly Neighbour[],
  { side, missing }: { side: number; missing: Float32Array },
  visit: (pixel: number, patch: Float32Array) => void,
): void {
  const reach = (side - 1) / 2;
  const bands = missing.length;
  const width = file.width + 2 * reach;
  const patch = new Float32Array(side * side * bands);
  for (let first = 0; first < file.height; first += CUBE_BLOCK_SIDE) {
    const rows = Math.min(CUBE_BLOCK_SIDE, file.height - first);
    // Rows of the widened tile, whose row 0 is `reach` above the tile.
    const wanted = new Uint8Array(width * (file.height + 2 * reach));
    wanted.fill(1, first * width, (first + rows + 2 * reach) * width);
    const spectra = new Map<number, Float32Array>();
    eachPixelWithNeighbours(file, around, { reach, wanted }, (positions, spectrum) => {
      const own = Float32Array.from(spectrum);
      for (const at of positions) spectra.set(at, own);
    });
    for (let row = first; row < first + rows; row++)
      for (let column = 0; column < file.width; column++) {
        if (!spectra.has((row + reach) * width + column + reach)) continue;
        for (let y = 0, at = 0; y < side; y++)
          for (let x = 0; x < side; x++, at += bands)
            patch.set(spectra.get((row + y) * width + column + x) ?? missing, at);
        visit(row * file.width + column, patch);
      }
  }
}
