/** The labelled pixels of a tile with the standardised spectra around them. Runs in worker threads. */

import { copyToSharedMemory } from '../../async/index.js';
import { eachLabelled, type LabelledTile, SETS, setOf } from '../class-labels/index.js';
import { type Standardisation, standardiseValue } from '../pixel-methods/index.js';
import { eachPixelWithNeighbours, type Neighbour, pixelNumber } from '../spectrum-reading/index.js';
import { samplingHash } from './sample-labelled-spectra.js';
import { inPrecision, type Precision, type SpectraValues } from './training-sample-precision.js';

const ALL_SETS = 2 ** SETS.length - 1;

/** Plain data in shared memory. */
export interface LabelledPatches {
  /** Standardised spectra, one after another. Each is stored once, even if several patches contain it. */
  spectra: SpectraValues;
  /** Labels of the labelled pixels, row by row. */
  codes: Uint8Array;
  /** Sets of the labelled pixels, indexes of `SETS`. */
  sets: Uint8Array;
  /** The sets whose squares the patches overlap: bit s is set for set s. */
  shown: Uint8Array;
  /** Indexes of the side x side spectra of each patch, row by row; -1 for pixels without data. */
  patches: Int32Array;
}

export interface PatchesTask extends LabelledTile {
  around: Neighbour[];
  standard: Standardisation;
  /** Share of the labelled pixels of each code to use, 0 to 1. */
  shares: Float64Array;
  side: number;
  precision: Precision;
}

export function labelledPatches(task: PatchesTask): LabelledPatches {
  const { file, cell, split, standard, shares, side, around, precision } = task;
  const bands = standard.centre.length;
  const labelled: { pixel: number; set: number; code: number }[] = [];
  eachLabelled(task, (block, groups) => {
    for (const { set, code, indexes } of groups)
      for (const index of indexes) {
        const pixel = pixelNumber(block, index, file.width);
        if (samplingHash(cell.geocode, pixel) < shares[code]) labelled.push({ pixel, set, code });
      }
  });
  labelled.sort((a, b) => a.pixel - b.pixel);

  const reach = (side - 1) / 2;
  const width = file.width + 2 * reach;
  const setAt = setOf(cell.geocode, split);
  // In a random split, patches always contain pixels of other sets. The comparison with the split by place shows this effect.
  const shownBy = (pixel: number) =>
    split === 'random' ? 0 : setsIn(file, setAt, pixel % file.width, Math.floor(pixel / file.width), reach);
  /** Positions of a patch in the widened tile. */
  const positions = labelled.flatMap(({ pixel }) => {
    const corner = Math.floor(pixel / file.width) * width + (pixel % file.width);
    return Array.from({ length: side * side }, (_, i) => corner + Math.floor(i / side) * width + (i % side));
  });
  const wanted = new Uint8Array(width * (file.height + 2 * reach));
  for (const at of positions) wanted[at] = 1;
  const numbers = new Int32Array(wanted.length).fill(-1);
  const most = wanted.reduce((sum, one) => sum + one, 0) * bands;
  const spectra: SpectraValues =
    precision === 'mixed'
      ? new Uint16Array(new SharedArrayBuffer(2 * most))
      : new Float32Array(new SharedArrayBuffer(4 * most));
  let found = 0;
  eachPixelWithNeighbours(file, around, { reach, wanted }, (own, spectrum) => {
    for (const at of own) numbers[at] = found;
    const values = Float32Array.from(spectrum, (value, b) => standardiseValue(value, b, standard));
    spectra.set(inPrecision(values, precision), found++ * bands);
  });
  return {
    // The end is unused if pixels have no data.
    spectra: found * bands === most ? spectra : copyToSharedMemory(spectra.subarray(0, found * bands)),
    codes: copyToSharedMemory(Uint8Array.from(labelled, ({ code }) => code)),
    sets: copyToSharedMemory(Uint8Array.from(labelled, ({ set }) => set)),
    shown: copyToSharedMemory(Uint8Array.from(labelled, ({ pixel, set }) => shownBy(pixel) | (1 << set))),
    patches: copyToSharedMemory(Int32Array.from(positions, (at) => numbers[at])),
  };
}

/**
 * Bits of the sets whose squares overlap a patch around a pixel. Patches are smaller than the squares of a set, so the corners suffice.
 * Pixels beyond the tile belong to another cell and may be of any set.
 */
function setsIn(
  { width, height }: { width: number; height: number },
  setAt: (column: number, row: number) => number,
  column: number,
  row: number,
  reach: number,
): number {
  const [west, east, north, south] = [column - reach, column + reach, row - reach, row + reach];
  if (west < 0 || north < 0 || east >= width || south >= height) return ALL_SETS;
  return (
    (1 << setAt(west, north)) |
    (1 << setAt(east, north)) |
    (1 << setAt(west, south)) |
    (1 << setAt(east, south))
  );
}
