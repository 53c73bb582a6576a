/**
 * What the other dates of a place show below the clouds of one date. A model that removes cloud reads it beside the cloudy date.
 * Both planes are also what a user would take without a model: the nearest clear date, and the median of the clear dates.
 */
import type { TileRecord } from '../storage/index.js';
import { clearPixels, type DatePixels } from './date-pixels.js';
import type { BandName } from './models/spec.js';

/** Dates that a prior is made of, at most: those nearest in time. */
const MOST_DATES = 6;
/** Percent of cloud of such a date, at most. */
const MOST_CLOUD = 60;
/** Two tiles so near in time, ms, may be of one overpass, and then share their clouds and their ground. */
const ONE_PASS_MS = 86_400_000 / 2;

/** One plane for each band. */
export interface Prior {
  /** The clear value that is nearest in time. */
  nearest: Float32Array[];
  /** The median of the clear values. */
  median: Float32Array[];
}

/**
 * Returns the dates for the prior of `tiles[date]`, as indices, the nearest in time first. Dates of one overpass with it or with
 * `except` are left out.
 */
export function priorDates(
  tiles: Pick<TileRecord, 'start' | 'cloudCover'>[],
  date: number,
  except = date,
): number[] {
  const away = (other: number, from: number) => Math.abs(tiles[other].start - tiles[from].start);
  return [...tiles.keys()]
    .filter((other) => away(other, date) > ONE_PASS_MS && away(other, except) > ONE_PASS_MS)
    .filter((other) => (tiles[other].cloudCover ?? 100) <= MOST_CLOUD)
    .sort((a, b) => away(a, date) - away(b, date) || tiles[a].start - tiles[b].start)
    .slice(0, MOST_DATES);
}

/**
 * The prior of a date from some other dates of the same size, the nearest in time first. If no other date is clear at a pixel, it has
 * the mean of all clear pixels of the band at all of these dates, or 0 without any.
 */
export function priorOf(date: DatePixels, others: DatePixels[], bands: readonly BandName[]): Prior {
  const size = date.width * date.height;
  const clear = [date, ...others].map((one) => clearPixels(one, bands));
  const prior: Prior = { nearest: [], median: [] };
  for (const band of bands) {
    const own = [date, ...others].map((one) => one.bands[band]!);
    const nearest = new Float32Array(size).fill(meanOfClear(own, clear));
    const median = nearest.slice();
    const values: number[] = [];
    for (let at = 0; at < size; at++) {
      values.length = 0;
      for (let i = 1; i < own.length; i++) if (clear[i][at]) values.push(own[i][at]);
      if (values.length === 0) continue;
      nearest[at] = values[0];
      values.sort((a, b) => a - b);
      const middle = values.length >> 1;
      median[at] = values.length % 2 === 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    }
    prior.nearest.push(nearest);
    prior.median.push(median);
  }
  return prior;
}

function meanOfClear(planes: Float32Array[], clear: Uint8Array[]): number {
  let sum = 0;
  let count = 0;
  for (const [i, plane] of planes.entries())
    for (let at = 0; at < plane.length; at++) {
      if (!clear[i][at]) continue;
      sum += plane[at];
      count++;
    }
  return count === 0 ? 0 : sum / count;
}
