/** Spectra of the labelled pixels of a tile, as networks are trained on them. Runs in worker threads. */

import type { Precision } from '../convolutional-networks/network-specs.js';
import { eachLabelled, type LabelledTile } from '../labels/labelled-pixels.js';
import { SETS } from '../labels/split.js';
import { fromFloat16, toFloat16 } from '../numeric/float16.js';
import { murmurFinalise } from '../numeric/hash.js';
import { copyToSharedMemory } from '../numeric/shared-memory.js';
import { PANEL_PIXELS } from '../pixel-methods/pixel-panel.js';
import { type Standardisation, standardiseValue } from './dense-network.js';

/** Values in the precision of a job: float32, or the bits of float16. */
export type SpectraValues = Float32Array | Uint16Array;

/** Spectra of pixels of one set. Plain data, in memory that threads share. */
export interface LabelledSpectra {
  pixels: number;
  /** Their labels. */
  codes: Uint8Array;
  /** Standardised values, in panels of 64 pixels: band b of pixel i is at (floor(i / 64) * bands + b) * 64 + i % 64. */
  values: SpectraValues;
}

export interface SpectraTask extends LabelledTile {
  kind: 'spectra';
  standard: Standardisation;
  /** Share of the labelled pixels of each code to use, 0 to 1. */
  shares: Float64Array;
  precision: Precision;
}

/** Panels in one part, the unit of work of a thread. */
const PANELS = 16;

/** Returns the pixels of each of `SETS`, in parts. */
export function labelledSpectra(task: SpectraTask): LabelledSpectra[][] {
  const { file, place, standard, shares, precision } = task;
  const size = standard.centre.length;
  const sets = SETS.map(() => ({ codes: [] as number[], panels: [] as Float32Array[] }));
  eachLabelled(task, ({ bands, column, row, stride }, groups) => {
    for (const { set, code, indexes } of groups) {
      const { codes, panels } = sets[set]!;
      for (const index of indexes) {
        const pixel = (row + Math.floor(index / stride)) * file.width + column + (index % stride);
        if (samplingHash(place.geocode, pixel) >= shares[code]!) continue;
        const at = codes.length % PANEL_PIXELS;
        if (at === 0) panels.push(new Float32Array(size * PANEL_PIXELS));
        const panel = panels.at(-1)!;
        for (let b = 0; b < size; b++) {
          const value = bands[b]![index]! * file.scales[b]! + file.offsets[b]!;
          panel[b * PANEL_PIXELS + at] = standardiseValue(value, b, standard);
        }
        codes.push(code);
      }
    }
  });
  return sets.map(({ codes, panels }) => {
    const parts: LabelledSpectra[] = [];
    for (let first = 0; first < panels.length; first += PANELS)
      parts.push(
        partOf(
          panels.slice(first, first + PANELS),
          codes.slice(first * PANEL_PIXELS, (first + PANELS) * PANEL_PIXELS),
          precision,
        ),
      );
    return parts;
  });
}

function partOf(panels: Float32Array[], codes: number[], precision: Precision): LabelledSpectra {
  const length = panels[0]!.length;
  const values = new Float32Array(length * panels.length);
  for (const [p, panel] of panels.entries()) values.set(panel, p * length);
  return {
    pixels: codes.length,
    codes: copyToSharedMemory(Uint8Array.from(codes)),
    values: copyToSharedMemory(inPrecision(values, precision)),
  };
}

export const inPrecision = (values: Float32Array, precision: Precision): SpectraValues =>
  precision === 'full' ? values : toFloat16(values);

/** Copies the held values from `at` on. */
export function loadSpectra(held: SpectraValues, at: number, into: Float32Array): void {
  if (held instanceof Float32Array) into.set(held.subarray(at, at + into.length));
  else fromFloat16(held.subarray(at, at + into.length), into);
}

/** Pixels of a class that are used at least, if it has as many. */
const MIN_PIXELS_PER_CLASS = 100;

/** Returns the share of the labelled pixels of each code to use, if memory holds `most` of them. A job uses more only for rare classes. */
export function sampleFractions(pixels: ReadonlyMap<number, number>, most: number): Float64Array {
  const all = [...pixels.values()].reduce((sum, count) => sum + count, 0);
  const shares = new Float64Array(256);
  for (const [code, count] of pixels)
    shares[code] = Math.min(1, Math.max(most / all, MIN_PIXELS_PER_CLASS / count));
  return shares;
}

/** A number in [0, 1) that follows from the place alone (FNV-1a, then `murmurFinalise`). */
export function samplingHash(geocode: string, pixel: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < geocode.length; i++) hash = Math.imul(hash ^ geocode.charCodeAt(i), 0x01000193);
  return (murmurFinalise(Math.imul(hash ^ pixel, 0x01000193)) >>> 0) / 2 ** 32;
}
