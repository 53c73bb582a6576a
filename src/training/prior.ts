/**
 * Temporal prior for cloud removal: estimates of the ground under the clouds of one date from other dates of the cell. A cloud-removal
 * model reads it beside the cloudy date. The nearest clear value and the median are also the baselines.
 */

import type { PixelGrid } from '../grid/index.js';
import type { TileRecord } from '../storage/index.js';
import {
  type AcquisitionFiles,
  type AcquisitionPixels,
  clearMask,
  readAcquisitions,
} from './acquisitions.js';
import { datedOf, timeBetween } from './dates.js';
import type { BandName } from './models/spec.js';
import { type LinearModel, ridge, type SufficientStatistics, sampleStatistics } from './ridge-regression.js';

/** Dilates a mask (pixels of value 1) by `radius` pixels in all directions, including diagonals. */
export function dilateMask(mask: Uint8Array, width: number, height: number, radius: number): Uint8Array {
  const along = (from: Uint8Array, length: number, step: number, lines: number, lineStep: number) => {
    const to = new Uint8Array(from.length);
    for (let line = 0; line < lines; line++) {
      // Distance to the last masked pixel, in a forward and a backward pass.
      for (const [first, direction] of [
        [0, 1],
        [length - 1, -1],
      ]) {
        let since = radius + 1;
        for (let n = 0, i = first; n < length; n++, i += direction) {
          const at = line * lineStep + i * step;
          since = from[at] ? 0 : since + 1;
          if (since <= radius) to[at] = 1;
        }
      }
    }
    return to;
  };
  return along(along(mask, width, 1, height, width), height, width, width, 1);
}

/** Radius around clouds that the adjustment excludes, because masks miss thin cloud edges. */
const HAZE_RADIUS_PX = 8;
/** Errors larger than this multiple of their root mean square are outliers: changes of the ground, and clouds that the mask misses. */
const OUTLIER_RMS = 2.5;
/** Minimum number of clear pixels for an adjustment. */
const MIN_CLEAR_PIXELS = 256;

/** The part of a prior that is common to all pixels of a cell. */
export interface PriorFit {
  /** The mean of each band over the clear pixels of all dates, or 0 if there are none. */
  means: number[];
  /** The difference between the date and the nearest clear values. Absent if there are too few clear pixels. */
  adjustment?: LinearModel;
}

/**
 * Fits the prior to a date: the regression from the clear values of other dates to the date, and the mean values. `nearest`: the nearest
 * clear values of `others`, NaN for pixels that have none.
 */
function fitPrior(
  date: AcquisitionPixels,
  others: AcquisitionPixels[],
  bands: readonly BandName[],
  nearest: Float32Array[],
): PriorFit {
  // The trainability of a cell is decided from masks alone, without bands.
  if (bands.length === 0) return { means: [] };
  const dates = [date, ...others];
  const clear = dates.map((one) => clearMask(one, bands));
  const means = bands.map((band) =>
    meanOfClear(
      dates.map((one) => one.bands[band]!),
      clear,
    ),
  );
  const truth = bands.map((band) => date.bands[band]!);
  const hazy = dilateMask(
    clear[0].map((is) => 1 - is),
    date.width,
    date.height,
    HAZE_RADIUS_PX,
  );
  const both = hazy.map((is, at) => (Number.isNaN(nearest[0][at]) ? 0 : 1 - is));
  const adjustment = fitAdjustment(truth, nearest, both);
  return { means, ...(adjustment && { adjustment }) };
}

/** Fits the difference between `truth` and the planes to the known pixels without outliers. */
function fitAdjustment(
  truth: Float32Array[],
  planes: Float32Array[],
  known: Uint8Array,
): LinearModel | undefined {
  const count = known.reduce((sum, is) => sum + is, 0);
  if (count < MIN_CLEAR_PIXELS) return undefined;
  const first = shifted(planes, ridge(differences(truth, planes, known)));
  const error = (at: number) => truth.reduce((sum, band, b) => sum + (band[at] - first[b][at]) ** 2, 0);
  const errors = Float64Array.from(known, (is, at) => (is ? error(at) : 0));
  const limit = (OUTLIER_RMS ** 2 * errors.reduce((sum, one) => sum + one, 0)) / count;
  const inliers = known.map((is, at) => (is && errors[at] <= limit ? 1 : 0));
  return ridge(differences(truth, planes, inliers));
}

/** Sums for the regression of `truth - planes` on the planes, over the known pixels. */
function differences(truth: Float32Array[], planes: Float32Array[], known: Uint8Array): SufficientStatistics {
  const bands = planes.length;
  const features = new Float32Array(known.length * bands);
  const targets = new Float64Array(known.length * bands);
  for (const [b, plane] of planes.entries())
    for (let at = 0; at < known.length; at++) {
      features[at * bands + b] = plane[at];
      targets[at * bands + b] = truth[b][at] - plane[at];
    }
  return sampleStatistics({ count: known.length, features, targets, counts: known });
}

/** Returns the planes with the fitted difference added. */
function adjustedPlanes(planes: Float32Array[], { adjustment }: PriorFit): Float32Array[] {
  return adjustment ? shifted(planes, adjustment) : planes.map((plane) => plane.slice());
}

const shifted = (planes: Float32Array[], { weights, bias }: LinearModel): Float32Array[] =>
  planes.map((plane, a) =>
    plane.map((value, at) => value + bias[a] + weights[a].reduce((sum, w, b) => sum + w * planes[b][at], 0)),
  );

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
  tiles: (Pick<TileRecord, 'start' | 'cloudCover'> & { end?: number })[],
  date: number,
  except = date,
): number[] {
  const away = (other: number, from: number) => timeBetween(datedOf(tiles[other]), datedOf(tiles[from]));
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

/** Maximum number of fits that are kept, the most recently used. */
const MAX_FITS = 1024;

/** Fits of the priors of cells, each computed once: the cloud-free tiles around a cell all need its fit. */
export class PriorFits {
  /** The least recently used first. Files of a version never change, so their paths identify a fit. */
  private readonly fits = new Map<string, PriorFit | { skipped: string }>();

  /** Returns the fit of the prior of a date to its other dates, or the reason why the dates cannot be read together. */
  async get(
    date: AcquisitionFiles,
    others: AcquisitionFiles[],
    bands: readonly BandName[],
    size: PixelGrid,
  ): Promise<PriorFit | { skipped: string }> {
    const { width, height } = size;
    const key = JSON.stringify([width, height, date, ...others]);
    const fit = this.fits.get(key) ?? (await fitDates([date, ...others], bands, size));
    this.fits.delete(key);
    this.fits.set(key, fit);
    const [oldest] = this.fits.keys();
    if (this.fits.size > MAX_FITS) this.fits.delete(oldest);
    return fit;
  }
}

async function fitDates(
  files: AcquisitionFiles[],
  bands: readonly BandName[],
  size: PixelGrid,
): Promise<PriorFit | { skipped: string }> {
  const read = await readAcquisitions(files, undefined, size);
  if ('skipped' in read) return read;
  const [date, ...others] = read.dates;
  return fitPrior(date, others, bands, priorValues(date, others, bands).nearest);
}
