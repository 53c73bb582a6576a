/** Standardised spectra of the labelled pixels of a tile, and of the pixels around them. Runs in worker threads. */

import { copyToSharedMemory } from '../async/index.js';
import { fromFloat16, toFloat16 } from '../utils/float16.js';
import { eachPixelWithNeighbours, type Neighbour, pixelNumber } from './blocks.js';
import { eachLabelled, type LabelledTile, pixelHash } from './labelled-pixels.js';
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

/** Spectra of pixels of one fold. Plain data in shared memory. */
export interface LabelledSpectra {
  fold: number;
  /** Bits of the folds within the gap. */
  near: number;
  pixels: number;
  /** Labels of the pixels. */
  codes: Uint8Array;
  /** Numbers of their squares. */
  squares: Int32Array;
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

/** Returns the pixels in parts of one fold and of the same folds within the gap. */
export function labelledSpectra(task: SpectraTask): LabelledSpectra[] {
  const { file, cell, standard, shares, precision } = task;
  const size = standard.centre.length;
  const sets = new Map<string, PixelSet>();
  eachLabelled(task, (block, groups) => {
    for (const { fold, near, square, code, indexes } of groups) {
      const set = sets.get(`${fold} ${near}`) ?? { fold, near, codes: [], squares: [], panels: [] };
      sets.set(`${fold} ${near}`, set);
      const { codes, squares, panels } = set;
      for (const index of indexes) {
        const pixel = pixelNumber(block, index, file.width);
        if (!isSampled(cell.geocode, pixel, shares[code])) continue;
        const at = codes.length % PANEL_PIXELS;
        if (at === 0) panels.push(new Float32Array(size * PANEL_PIXELS));
        const panel = panels.at(-1)!;
        for (let b = 0; b < size; b++) {
          const value = block.bands[b][index] * file.scales[b] + file.offsets[b];
          panel[b * PANEL_PIXELS + at] = standardiseValue(value, b, standard);
        }
        codes.push(code);
        squares.push(square);
      }
    }
  });
  return [...sets.values()].flatMap((set) => {
    const parts: LabelledSpectra[] = [];
    for (let first = 0; first < set.panels.length; first += PANELS_PER_PART)
      parts.push(partOf(set, first, precision));
    return parts;
  });
}

interface PixelSet {
  fold: number;
  near: number;
  codes: number[];
  squares: number[];
  panels: Float32Array[];
}

function partOf(set: PixelSet, first: number, precision: Precision): LabelledSpectra {
  const panels = set.panels.slice(first, first + PANELS_PER_PART);
  const { length } = panels[0];
  const values = new Float32Array(length * panels.length);
  for (const [p, panel] of panels.entries()) values.set(panel, p * length);
  const range = [first * PANEL_PIXELS, (first + PANELS_PER_PART) * PANEL_PIXELS] as const;
  const codes = Uint8Array.from(set.codes.slice(...range));
  return {
    fold: set.fold,
    near: set.near,
    pixels: codes.length,
    codes: copyToSharedMemory(codes),
    squares: copyToSharedMemory(Int32Array.from(set.squares.slice(...range))),
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

const isSampled = (geocode: string, pixel: number, share: number) =>
  pixelHash(geocode, pixel) / 2 ** 32 < share;

/** Plain data in shared memory. */
export interface LabelledPatches {
  /** Standardised spectra, one after another. Each is stored once, even if several patches contain it. */
  spectra: SpectraValues;
  /** Labels of the labelled pixels, row by row. */
  codes: Uint8Array;
  /** Folds of the labelled pixels, and bits of the folds within the gap, so that other patches show none of their pixels. */
  folds: Uint8Array;
  near: Uint8Array;
  /** Numbers of their squares. */
  squares: Int32Array;
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
  const { file, cell, standard, shares, side, around, precision } = task;
  const bands = standard.centre.length;
  const labelled: { pixel: number; fold: number; near: number; square: number; code: number }[] = [];
  eachLabelled(task, (block, groups) => {
    for (const { indexes, ...group } of groups)
      for (const index of indexes) {
        const pixel = pixelNumber(block, index, file.width);
        if (isSampled(cell.geocode, pixel, shares[group.code])) labelled.push({ pixel, ...group });
      }
  });
  labelled.sort((a, b) => a.pixel - b.pixel);

  const reach = (side - 1) / 2;
  const width = file.width + 2 * reach;
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
    folds: copyToSharedMemory(Uint8Array.from(labelled, ({ fold }) => fold)),
    near: copyToSharedMemory(Uint8Array.from(labelled, ({ near }) => near)),
    squares: copyToSharedMemory(Int32Array.from(labelled, ({ square }) => square)),
    patches: copyToSharedMemory(Int32Array.from(positions, (at) => numbers[at])),
  };
}
