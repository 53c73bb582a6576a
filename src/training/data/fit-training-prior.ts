/** Fits the prior of cloud removal to a date: the regression from the clear values of other dates to the date, and the mean values. */
import type { BandName } from '../models/index.js';
import { type LinearModel, ridge, type SufficientStatistics, sampleStatistics } from '../ridge-regression.js';
import { dilateMask } from './dilate-training-mask.js';
import { type AcquisitionPixels, clearMask } from './training-data-pixels.js';

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

/** `nearest`: the nearest clear values of `others`, NaN for pixels that have none. */
export function fitPrior(
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
export function adjustedPlanes(planes: Float32Array[], { adjustment }: PriorFit): Float32Array[] {
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
