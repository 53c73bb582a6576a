/**
 * Temporal prior for cloud removal: estimates of the ground under the clouds of one date from other dates of the cell. A cloud-removal
 * model reads it beside the cloudy date. The nearest clear value and the median are also the baselines.
 */
import type { PixelGrid } from '../../grid/index.js';
import type { TileRecord } from '../../storage/index.js';
import type { BandName } from '../models/index.js';
import { adjustedPlanes, fitPrior, type PriorFit } from './fit-training-prior.js';
import { type AcquisitionPixels, clearMask } from './training-data-pixels.js';

/** Maximum number of dates in a prior, the nearest in time. */
const MAX_PRIOR_DATES = 6;
/** Maximum cloud cover of such a date. */
const MAX_CLOUD_PERCENT = 60;
/** Two tiles closer in time than this may belong to one overpass, and then share clouds and ground. */
const SAME_OVERPASS_MS = 86_400_000 / 2;

/** Values of other dates, one plane for each band. NaN marks pixels that are clear on none of them. */
export interface PriorValues {
  /** The clear value that is nearest in time. */
  nearest: Float32Array[];
  /** The median of the clear values. */
  median: Float32Array[];
}

/** The values of other dates, and those adjusted to a date. All are finite. */
interface TemporalPrior extends PriorValues {
  /** The nearest clear values, adjusted to the date by linear regression between its own clear pixels and theirs. */
  adjusted: Float32Array[];
}

/**
 * Returns the indices of the dates for the prior of `tiles[date]`, the nearest in time first. Dates from the same overpass as `date` or
 * `except` are excluded.
 */
export function priorDates(
  tiles: Pick<TileRecord, 'start' | 'cloudCover'>[],
  date: number,
  except = date,
): number[] {
  const away = (other: number, from: number) => Math.abs(tiles[other].start - tiles[from].start);
  return [...tiles.keys()]
    .filter((other) => away(other, date) > SAME_OVERPASS_MS && away(other, except) > SAME_OVERPASS_MS)
    .filter((other) => (tiles[other].cloudCover ?? 100) <= MAX_CLOUD_PERCENT)
    .sort((a, b) => away(a, date) - away(b, date) || tiles[a].start - tiles[b].start)
    .slice(0, MAX_PRIOR_DATES);
}

/**
 * Returns the input planes of a cloud-removal model: the bands of the date with its clouds replaced by the adjusted nearest values; the
 * nearest clear values; the medians; the adjusted nearest values; and 1 where there is cloud or shadow. The cloudy values themselves are
 * excluded, because they contain little about the ground and differ from date to date.
 */
export function cloudInputs(
  date: AcquisitionPixels,
  others: AcquisitionPixels[],
  bands: readonly BandName[],
  cloud: Uint8Array,
): Float32Array[] {
  return composeCloudInputs(
    bands.map((name) => date.bands[name]!),
    temporalPrior(date, others, bands),
    cloud,
  );
}

/** Returns the same planes from those of the date, of which only the clear pixels count, and of a prior. */
export function composeCloudInputs(
  own: Float32Array[],
  { nearest, median, adjusted }: TemporalPrior,
  cloud: Uint8Array,
): Float32Array[] {
  const composite = own.map((plane, b) => plane.map((value, at) => (cloud[at] ? adjusted[b][at] : value)));
  return [...composite, ...nearest, ...median, ...adjusted, Float32Array.from(cloud)];
}

/**
 * Computes the prior of a date from other dates of the same size, the nearest in time first. A pixel that is clear on no other date has
 * the mean of all clear pixels of the band on all of these dates, or 0 if there are none.
 */
export function temporalPrior(
  date: AcquisitionPixels,
  others: AcquisitionPixels[],
  bands: readonly BandName[],
): TemporalPrior {
  const values = priorValues(date, others, bands);
  return applyPriorFit(values, fitPrior(date, others, bands, values.nearest));
}

/** Completes and adjusts values of other dates by the fit of a cell. */
export function applyPriorFit(values: PriorValues, fit: PriorFit): TemporalPrior {
  const completed = (planes: Float32Array[]) =>
    planes.map((plane, b) => plane.map((value) => (Number.isNaN(value) ? fit.means[b] : value)));
  const nearest = completed(values.nearest);
  return { nearest, median: completed(values.median), adjusted: adjustedPlanes(nearest, fit) };
}

/** Returns the clear values of other dates of one size, the nearest in time first. Those of a pixel depend on this pixel alone. */
export function priorValues(
  { width, height }: PixelGrid,
  others: AcquisitionPixels[],
  bands: readonly BandName[],
): PriorValues {
  const size = width * height;
  const clear = others.map((one) => clearMask(one, bands));
  const nearest: Float32Array[] = [];
  const median: Float32Array[] = [];
  for (const band of bands) {
    const planes = others.map((one) => one.bands[band]!);
    const first = new Float32Array(size).fill(NaN);
    const middle = first.slice();
    const values: number[] = [];
    for (let at = 0; at < size; at++) {
      values.length = 0;
      for (let i = 0; i < planes.length; i++) if (clear[i][at]) values.push(planes[i][at]);
      if (values.length === 0) continue;
      first[at] = values[0];
      values.sort((a, b) => a - b);
      const half = values.length >> 1;
      middle[at] = values.length % 2 === 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    }
    nearest.push(first);
    median.push(middle);
  }
  return { nearest, median };
}
