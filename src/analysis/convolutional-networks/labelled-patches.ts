/** The labelled pixels of a tile with the spectra around them, as networks are trained on them. Runs in worker threads. */

import { type Standardisation, standardiseValue } from '../dense-networks/dense-network.js';
import { type SpectraValues, samplingHash } from '../dense-networks/labelled-spectra.js';
import { eachLabelled, type LabelledTile } from '../labels/labelled-pixels.js';
import { SETS, setOf } from '../labels/split.js';
import { toFloat16 } from '../numeric/float16.js';
import { copyToSharedMemory } from '../numeric/shared-memory.js';
import { eachPixelWithNeighbours, type Neighbour } from '../tile-reading/neighbour-blocks.js';
import type { Precision } from './network-specs.js';

const ALL_SETS = 2 ** SETS.length - 1;

/** Plain data, in memory that threads share. */
export interface LabelledPatches {
  /** Standardised spectra, one after another; each is held once, however many patches show it. Halves are their bits. */
  spectra: SpectraValues;
  /** Labels of the labelled pixels, which are in the order of the rows. */
  codes: Uint8Array;
  /** Their sets, indexes of `SETS`. */
  sets: Uint8Array;
  /** The sets whose ground their patches show: bit s is set for set s. */
  shown: Uint8Array;
  /** The side x side spectra of their patches, row by row; -1 where there is none. */
  patches: Int32Array;
}

export interface PatchesTask extends LabelledTile {
  kind: 'patches';
  around: Neighbour[];
  standard: Standardisation;
  /** Share of the labelled pixels of each code to use, 0 to 1. */
  shares: Float64Array;
  side: number;
  precision: Precision;
}

export function labelledPatches(task: PatchesTask): LabelledPatches {
  const { file, place, split, standard, shares, side, around, precision } = task;
  const bands = standard.centre.length;
  const labelled: { pixel: number; set: number; code: number }[] = [];
  eachLabelled(task, ({ column, row, stride }, groups) => {
    for (const { set, code, indexes } of groups)
      for (const index of indexes) {
        const pixel = (row + Math.floor(index / stride)) * file.width + column + (index % stride);
        if (samplingHash(place.geocode, pixel) < shares[code]!) labelled.push({ pixel, set, code });
      }
  });
  labelled.sort((a, b) => a.pixel - b.pixel);

  const reach = (side - 1) / 2;
  const width = file.width + 2 * reach;
  const setAt = setOf(place.geocode, split);
  // Single pixels of a random split lie among those of other sets, which is what it is compared for.
  const shownBy = (pixel: number) =>
    split === 'random' ? 0 : setsIn(file, setAt, pixel % file.width, Math.floor(pixel / file.width), reach);
  /** Positions of a patch in the widened tile. */
  const places = labelled.flatMap(({ pixel }) => {
    const corner = Math.floor(pixel / file.width) * width + (pixel % file.width);
    return Array.from({ length: side * side }, (_, i) => corner + Math.floor(i / side) * width + (i % side));
  });
  const wanted = new Uint8Array(width * (file.height + 2 * reach));
  for (const at of places) wanted[at] = 1;
  const numbers = new Int32Array(wanted.length).fill(-1);
  const most = wanted.reduce((sum, one) => sum + one, 0) * bands;
  const spectra: SpectraValues =
    precision === 'mixed'
      ? new Uint16Array(new SharedArrayBuffer(2 * most))
      : new Float32Array(new SharedArrayBuffer(4 * most));
  let found = 0;
  eachPixelWithNeighbours(file, around, { reach, wanted }, (places, spectrum) => {
    for (const at of places) numbers[at] = found;
    const values = Float32Array.from(spectrum, (value, b) => standardiseValue(value, b, standard));
    spectra.set(precision === 'mixed' ? toFloat16(values) : values, found++ * bands);
  });
  return {
    // Pixels without data leave the end empty.
    spectra: found * bands === most ? spectra : copyToSharedMemory(spectra.subarray(0, found * bands)),
    codes: copyToSharedMemory(Uint8Array.from(labelled, ({ code }) => code)),
    sets: copyToSharedMemory(Uint8Array.from(labelled, ({ set }) => set)),
    shown: copyToSharedMemory(Uint8Array.from(labelled, ({ pixel, set }) => shownBy(pixel) | (1 << set))),
    patches: copyToSharedMemory(Int32Array.from(places, (at) => numbers[at]!)),
  };
}

/**
 * Bits of the sets whose ground lies in a square around a pixel. Patches are smaller than the squares of a set, so the corners suffice. Beyond
 * the tile are squares of another cell, which may be of any set.
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
