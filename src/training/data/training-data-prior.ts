/**
 * Temporal prior for cloud removal: estimates of the ground under the clouds of one date from other dates of the cell. A cloud-removal
 * model reads it beside the cloudy date. The nearest clear value and the median are also the baselines.
 */
import type { TileRecord } from '../../storage/index.js';
import type { BandName } from '../models/index.js';
import { type LinearModel, ridge, type SufficientStatistics, sampleStatistics } from '../ridge-regression.js';
import { dilateMask } from './dilate-training-mask.js';
import { type AcquisitionPixels, clearMask } from './training-data-pixels.js';

/** Maximum number of dates in a prior, the nearest in time. */
const MAX_PRIOR_DATES = 6;
/** Maximum cloud cover of such a date. */
const MAX_CLOUD_PERCENT = 60;
/** Two tiles closer in time than this may belong to one overpass, and then share clouds and ground. */
const SAME_OVERPASS_MS = 86_400_000 / 2;
/** Radius around clouds that the adjustment excludes, because masks miss thin cloud edges. */
const HAZE_RADIUS_PX = 8;
/** Errors larger than this multiple of their root mean square are outliers: changes of the ground, and clouds that the mask misses. */
const OUTLIER_RMS = 2.5;
/** Minimum number of clear pixels for an adjustment. */
const MIN_CLEAR_PIXELS = 256;

/** One plane for each band. */
interface TemporalPrior {
  /** The clear value that is nearest in time. */
  nearest: Float32Array[];
  /** The median of the clear values. */
  median: Float32Array[];
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
  const { nearest, median, adjusted } = temporalPrior(date, others, bands);
  const composite = bands.map((name, b) =>
    date.bands[name]!.map((value, at) => (cloud[at] ? adjusted[b][at] : value)),
  );
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
  const size = date.width * date.height;
  const clear = [date, ...others].map((one) => clearMask(one, bands));
  const nearest: Float32Array[] = [];
  const median: Float32Array[] = [];
  const known = new Uint8Array(size);
  for (const band of bands) {
    const own = [date, ...others].map((one) => one.bands[band]!);
    const first = new Float32Array(size).fill(meanOfClear(own, clear));
    const middle = first.slice();
    const values: number[] = [];
    for (let at = 0; at < size; at++) {
      values.length = 0;
      for (let i = 1; i < own.length; i++) if (clear[i][at]) values.push(own[i][at]);
      if (values.length === 0) continue;
      known[at] = 1;
      first[at] = values[0];
      values.sort((a, b) => a - b);
      const half = values.length >> 1;
      middle[at] = values.length % 2 === 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    }
    nearest.push(first);
    median.push(middle);
  }
  const truth = bands.map((band) => date.bands[band]!);
  const hazy = dilateMask(
    clear[0].map((is) => 1 - is),
    date.width,
    date.height,
    HAZE_RADIUS_PX,
  );
  const both = known.map((is, at) => is & (1 - hazy[at]));
  return { nearest, median, adjusted: adjustedTo(truth, nearest, both) };
}

/**
 * Adds to the planes the linear regression of the difference between `truth` and the planes, fitted to the known pixels without outliers.
 */
function adjustedTo(truth: Float32Array[], planes: Float32Array[], known: Uint8Array): Float32Array[] {
  const count = known.reduce((sum, is) => sum + is, 0);
  if (count < MIN_CLEAR_PIXELS) return planes.map((plane) => plane.slice());
  const first = shifted(planes, ridge(differences(truth, planes, known)));
  const error = (at: number) => truth.reduce((sum, band, b) => sum + (band[at] - first[b][at]) ** 2, 0);
  const errors = Float64Array.from(known, (is, at) => (is ? error(at) : 0));
  const limit = (OUTLIER_RMS ** 2 * errors.reduce((sum, one) => sum + one, 0)) / count;
  const inliers = known.map((is, at) => (is && errors[at] <= limit ? 1 : 0));
  return shifted(planes, ridge(differences(truth, planes, inliers)));
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
