/** Standardised spectra of the labelled pixels of a tile, and of the pixels around them. Runs in worker threads. */

import { copyToSharedMemory } from '../async/index.js';
import { fromFloat16, toFloat16 } from '../utils/float16.js';
import { eachPixelWithNeighbours, type Neighbour, pixelNumber } from './blocks.js';
import { murmurFinalise } from './hash.js';
import { eachLabelled, type LabelledTile, SETS, setOf } from './labelled-pixels.js';
import { type Standardisation, standardiseValue } from './methods/dense-network.js';
import { PANEL_PIXELS } from './methods/panel.js';

/** Precision of stored spectra and exchanged gradients: float32, or float16 with loss scaling (Micikevicius et al. 2018). */
export const PRECISIONS = ['full', 'mixed'] as const;
export type Precision = (typeof PRECISIONS)[number];
export const BYTES_PER_VALUE: Record<Precision, number> = { full: 4, mixed: 2 };

/** Values in the precision of a job: float32, or the bits of float16. */
type SpectraValues = Float32Array | Uint16Array;

export const inPrecision = (values: Float32Array, precision: Precision): SpectraValues =>
  precision === 'full' ? values : toFloat16(values);

/** Copies `into.length` values from `at` on. */
export function loadSpectra(values: SpectraValues, at: number, into: Float32Array): void {
  const part = values.subarray(at, at + into.length);
  if (part instanceof Float32Array) into.set(part);
  else fromFloat16(part, into);
}

/** Spectra of pixels of one set. Plain data in shared memory. */
export interface LabelledSpectra {
  pixels: number;
  /** Labels of the pixels. */
  codes: Uint8Array;
  /** Standardised values, in panels of 64 pixels: band b of pixel i is at (floor(i / 64) * bands + b) * 64 + i % 64. */
  values: SpectraValues;
}

interface SpectraTask extends LabelledTile {
  standard: Standardisation;
  /** Share of the labelled pixels of each code to use, 0 to 1. */
  shares: Float64Array;
  precision: Precision;
}

/** Panels of one part, which is the unit of work of a thread. */
const PANELS_PER_PART = 16;

/** Returns the pixels of each of `SETS`, in parts. */
export function labelledSpectra(task: SpectraTask): LabelledSpectra[][] {
  const { file, cell, standard, shares, precision } = task;
  const size = standard.centre.length;
  const sets = SETS.map(() => ({ codes: [] as number[], panels: [] as Float32Array[] }));
  eachLabelled(task, (block, groups) => {
    for (const { set, code, indexes } of groups) {
      const { codes, panels } = sets[set];
      for (const index of indexes) {
        const pixel = pixelNumber(block, index, file.width);
        if (samplingHash(cell.geocode, pixel) >= shares[code]) continue;
        const at = codes.length % PANEL_PIXELS;
        if (at === 0) panels.push(new Float32Array(size * PANEL_PIXELS));
        const panel = panels.at(-1)!;
        for (let b = 0; b < size; b++) {
          const value = block.bands[b][index] * file.scales[b] + file.offsets[b];
          panel[b * PANEL_PIXELS + at] = standardiseValue(value, b, standard);
        }
        codes.push(code);
      }
    }
  });
  return sets.map(({ codes, panels }) => {
    const parts: LabelledSpectra[] = [];
    for (let first = 0; first < panels.length; first += PANELS_PER_PART) {
      const end = first + PANELS_PER_PART;
      const labels = codes.slice(first * PANEL_PIXELS, end * PANEL_PIXELS);
      parts.push(partOf(panels.slice(first, end), labels, precision));
    }
    return parts;
  });
}

function partOf(panels: Float32Array[], codes: number[], precision: Precision): LabelledSpectra {
  const length = panels[0].length;
  const values = new Float32Array(length * panels.length);
  for (const [p, panel] of panels.entries()) values.set(panel, p * length);
  return {
    pixels: codes.length,
    codes: copyToSharedMemory(Uint8Array.from(codes)),
    values: copyToSharedMemory(inPrecision(values, precision)),
  };
}

/** Smallest number of pixels that are used of a class, if it has as many. */
const MIN_PIXELS_PER_CLASS = 100;

/** Returns the share of the labelled pixels of each code to use, if memory holds `most` pixels. Only rare classes exceed this limit. */
export function sampleFractions(pixels: ReadonlyMap<number, number>, most: number): Float64Array {
  const all = [...pixels.values()].reduce((sum, count) => sum + count, 0);
  const shares = new Float64Array(256);
  for (const [code, count] of pixels)
    shares[code] = Math.min(1, Math.max(most / all, MIN_PIXELS_PER_CLASS / count));
  return shares;
}

/** A number in [0, 1) that depends only on the position of a pixel (FNV-1a, then `murmurFinalise`). */
function samplingHash(geocode: string, pixel: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < geocode.length; i++) hash = Math.imul(hash ^ geocode.charCodeAt(i), 0x01000193);
  return (murmurFinalise(Math.imul(hash ^ pixel, 0x01000193)) >>> 0) / 2 ** 32;
}

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

interface PatchesTask extends LabelledTile {
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
