/** Standardised spectra of the labelled pixels of a tile. Runs in worker threads. */

import { copyToSharedMemory } from '../../async/index.js';
import { eachLabelled, type LabelledTile, SETS } from '../class-labels/index.js';
import { murmurFinalise } from '../numeric/index.js';
import { PANEL_PIXELS, type Standardisation, standardiseValue } from '../pixel-methods/index.js';
import { pixelNumber } from '../spectrum-reading/index.js';
import { inPrecision, type Precision, type SpectraValues } from './training-sample-precision.js';

/** Spectra of pixels of one set. Plain data in shared memory. */
export interface LabelledSpectra {
  pixels: number;
  /** Labels of the pixels. */
  codes: Uint8Array;
  /** Standardised values, in panels of 64 pixels: band b of pixel i is at (floor(i / 64) * bands + b) * 64 + i % 64. */
  values: SpectraValues;
}

export interface SpectraTask extends LabelledTile {
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
export function samplingHash(geocode: string, pixel: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < geocode.length; i++) hash = Math.imul(hash ^ geocode.charCodeAt(i), 0x01000193);
  return (murmurFinalise(Math.imul(hash ^ pixel, 0x01000193)) >>> 0) / 2 ** 32;
}
