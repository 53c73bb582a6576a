/** Replaces the cloudy pixels of a date by what a model makes of them, and keeps all others as they are. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { clearPixels, type DatePixels, isCloudy, readableOf } from '../date-pixels.js';
import { dilated } from '../dilate.js';
import type { Tf } from '../engine/tf.js';
import type { ModelSpec } from '../models/spec.js';
import { cloudInputs } from '../prior.js';
import { predictImage } from './predict-image.js';

export interface FilledDate {
  /** Reflectances, one plane an input band, that replace those of the date where `filled` is 1. */
  planes: Float32Array[];
  filled: Uint8Array;
}

/** Standard deviation, in pixels, of the Gaussian window in which clear pixels correct what is filled in. */
const SEAM_SIGMA = 8;
/** Pixels around clouds that no correction is taken from. */
const HAZE_RADIUS = 3;
/** Weight of a correction of 0, beside the clear pixels of the window: corrections fade away from the edge of the cloud. */
const FADING = 0.05;

/**
 * Fills the pixels with cloud or shadow. Near a cloud, the clear pixels of the date differ from the adjusted prior that the model
 * begins with; this difference is interpolated into the cloud (normalized convolution, Knutsson and Westin 1993), so that no seam
 * shows. `others`: the dates of the prior. Returns undefined if no pixel can be filled.
 */
export function fillClouds(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  date: DatePixels,
  others: DatePixels[],
): FilledDate | undefined {
  const { width, height, mask } = date;
  const readable = readableOf(spec, date);
  const wanted = mask.map((code, at) => (isCloudy(code) && readable[at] ? 1 : 0));
  if (!wanted.includes(1)) return undefined;
  const own = spec.inputs.map((name) => date.bands[name]!);
  // Models of older versions read the date alone.
  const channels = model.inputs[0].shape.at(-1);
  const inputs = channels === own.length ? own : cloudInputs(date, others, spec.inputs, wanted);
  const planes = predictImage(tf, model, spec, { width, height, inputs, readable }, wanted);
  const filled = wanted.map((is, at) => (is && planes.every((plane) => Number.isFinite(plane[at])) ? 1 : 0));
  if (!filled.includes(1)) return undefined;
  // Masks miss the thin edges of clouds.
  const hazy = dilated(wanted, width, height, HAZE_RADIUS);
  const clear = clearPixels(date, spec.inputs).map((is, at) => is & (1 - hazy[at]));
  // Of a model of an older version, the outputs themselves say how it errs at clear pixels.
  const expected = inputs === own ? planes : inputs.slice(3 * own.length, 4 * own.length);
  for (const [b, plane] of planes.entries()) {
    const difference = own[b].map((value, at) => value - expected[b][at]);
    correct(plane, difference, filled, clear, width, height);
  }
  return { planes, filled };
}

/** Adds a difference that is known at clear pixels, interpolated, to the filled ones. */
function correct(
  plane: Float32Array,
  difference: Float32Array,
  filled: Uint8Array,
  clear: Uint8Array,
  width: number,
  height: number,
): void {
  const known = clear.map((is, at) => (is && Number.isFinite(difference[at]) ? 1 : 0));
  const sums = smooth(
    difference.map((value, at) => (known[at] ? value : 0)),
    width,
    height,
  );
  const weights = smooth(Float32Array.from(known), width, height);
  for (let at = 0; at < plane.length; at++) if (filled[at]) plane[at] += sums[at] / (weights[at] + FADING);
}

/** A Gaussian filter; beyond the edges there is nothing. */
function smooth(values: Float32Array, width: number, height: number): Float32Array {
  const radius = 3 * SEAM_SIGMA;
  const kernel = Array.from({ length: 2 * radius + 1 }, (_, i) =>
    Math.exp(-((i - radius) ** 2) / (2 * SEAM_SIGMA ** 2)),
  );
  const total = kernel.reduce((sum, weight) => sum + weight, 0);
  const along = (from: Float32Array, length: number, step: number, lines: number, lineStep: number) => {
    const to = new Float32Array(from.length);
    for (let line = 0; line < lines; line++)
      for (let i = 0; i < length; i++) {
        let sum = 0;
        const end = Math.min(length - 1, i + radius);
        for (let k = Math.max(0, i - radius); k <= end; k++)
          sum += kernel[k - i + radius] * from[line * lineStep + k * step];
        to[line * lineStep + i * step] = sum / total;
      }
    return to;
  };
  return along(along(values, width, 1, height, width), height, width, width, 1);
}
