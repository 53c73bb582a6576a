/**
 * The history of a place: what its other dates measured at each pixel. It is an input of models beside the bands of a date.
 *
 * Invariant: the history of a date never holds the date itself, an acquisition within three days of it (another sensor, granule or
 * processing may show the same state), a date that is held out, or pixels that were not measured.
 */
import type { Window } from '../raster/index.js';
import { type Dated, isSamePass } from './dates.js';
import type { LabelledImage } from './labelled-images.js';
import { historyLayout, type ModelSpec } from './models/spec.js';

/**
 * Which other dates of a place are its history: all of them, or those before the date. `none`: models read no history. In the training of
 * models for `past`, dates have all other dates of the training as history, as the next date will.
 */
export const HISTORY_USES = ['all', 'past', 'none'] as const;
export type HistoryUse = (typeof HISTORY_USES)[number];

/** True if a date may be in the history of another one. */
const isHistoryOf = (other: Dated, date: Dated, use: HistoryUse): boolean =>
  use !== 'none' && !isSamePass(other, date) && (use === 'all' || other.time < date.time);

/** True if a place with these dates has a history: two dates of different passes. */
export const hasUsableHistory = (dates: readonly Dated[]): boolean =>
  dates.some((date) => dates.some((other) => !isSamePass(other, date)));

/** Largest number of dates in a history: those nearest in time. */
const MAX_HISTORY_DATES = 32;

/** Returns the dates that are the history of another one, the nearest first. */
export function historyDates<T extends Dated>(others: readonly T[], date: Dated, use: HistoryUse): T[] {
  const away = (other: Dated) => Math.abs(other.time - date.time);
  return others
    .filter((other) => isHistoryOf(other, date, use))
    .sort((a, b) => away(a) - away(b) || a.time - b.time)
    .slice(0, MAX_HISTORY_DATES);
}

/**
 * Returns the planes of `historyLayout` for a part of a date, NaN where no other date measured the pixel (0 in the first plane). `others`:
 * images of the place, of which those count that `isHistoryOf` accepts.
 */
export function historyPlanes(
  spec: Pick<ModelSpec, 'inputs' | 'target'>,
  date: Dated & Pick<LabelledImage, 'width'>,
  others: readonly LabelledImage[],
  use: HistoryUse,
  part: Window,
): Float32Array[] {
  const layout = historyLayout(spec);
  const size = part.width * part.height;
  const counts = new Uint16Array(size);
  const squares = new Float64Array(size);
  const planes = Array.from({ length: layout.count }, () => new Float32Array(size));
  const nearestFirst = historyDates(others, date, use);
  const [nearest, mean] = [planes[layout.nearest]!, planes[layout.mean]!];
  for (const { targets, measured, targetMask } of nearestFirst) {
    const target = targets[0]!;
    const bands = measured!.map((band, b) => ({ band, sums: planes[layout.bands + b]! }));
    for (let row = 0; row < part.height; row++) {
      const first = (part.row + row) * date.width + part.column - row * part.width;
      for (let i = row * part.width; i < (row + 1) * part.width; i++) {
        if (!targetMask[first + i]) continue;
        const value = target[first + i]!;
        if (counts[i] === 0) nearest[i] = value;
        counts[i]!++;
        mean[i]! += value;
        squares[i]! += value * value;
        for (const { band, sums } of bands) sums[i]! += band[first + i]!;
      }
    }
  }
  for (let i = 0; i < size; i++) {
    const count = counts[i]!;
    if (count === 0) {
      for (const [p, plane] of planes.entries()) if (p !== layout.has) plane[i] = NaN;
      continue;
    }
    planes[layout.has]![i] = 1;
    const average = mean[i]! / count;
    mean[i] = average;
    planes[layout.spread]![i] = Math.sqrt(Math.max(0, squares[i]! / count - average * average));
    for (let p = layout.bands; p < layout.spread; p++) planes[p]![i]! /= count;
  }
  return planes;
}

/** Minimum share of the pixels of a patch that other dates must have measured. */
const MIN_MEASURED_FRACTION = 0.25;

/**
 * Fills the pixels of a patch or window without history: by the mean of the others, and all by 0 if too few of them have one.
 * `isOneValue`: the first plane then says for the whole patch whether it has a history, because the model predicts one value for it.
 */
export function fillHistory(planes: Float32Array[], isOneValue: boolean): void {
  const [has, ...values] = planes;
  const count = has!.reduce((sum, is) => sum + is, 0);
  if (count < MIN_MEASURED_FRACTION * has!.length) {
    for (const plane of planes) plane.fill(0);
    return;
  }
  if (isOneValue) has!.fill(1);
  if (count === has!.length) return;
  for (const plane of values) {
    const mean = plane.reduce((sum, value) => (Number.isNaN(value) ? sum : sum + value), 0) / count;
    for (let i = 0; i < plane.length; i++) if (Number.isNaN(plane[i]!)) plane[i] = mean;
  }
}
