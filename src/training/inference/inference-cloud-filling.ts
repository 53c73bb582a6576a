/** Replaces the cloudy pixels of a date with the predictions of a model. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { type AcquisitionPixels, cloudInputs, inputMaskOf, isCloudy } from '../data/index.js';
import type { ModelSpec } from '../models/index.js';
import { predictImage } from './sliding-window.js';

interface FilledDate {
  /** Reflectances, one plane for each input band, that replace those of the date where `filled` is 1. */
  planes: Float32Array[];
  filled: Uint8Array;
}

/**
 * Fills the pixels with cloud or shadow. The prior of the model is adjusted to the clear pixels of the date, so that fills meet them
 * without a seam; a correction by the clear pixels at the edge of a cloud would add the haze that masks miss there. `others`: the dates
 * of the prior. Returns undefined if no pixel can be filled.
 */
export function fillClouds(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  date: AcquisitionPixels,
  others: AcquisitionPixels[],
): FilledDate | undefined {
  const { width, height, mask } = date;
  const inputMask = inputMaskOf(spec, date);
  const wanted = mask.map((code, at) => (isCloudy(code) && inputMask[at] ? 1 : 0));
  if (!wanted.includes(1)) return undefined;
  const own = spec.inputs.map((name) => date.bands[name]!);
  // Models of older versions read only the date itself.
  const channels = model.inputs[0].shape.at(-1);
  const inputs = channels === own.length ? own : cloudInputs(date, others, spec.inputs, wanted);
  const planes = predictImage(tf, model, spec, { width, height, inputs, inputMask }, wanted);
  const filled = wanted.map((is, at) => (is && planes.every((plane) => Number.isFinite(plane[at])) ? 1 : 0));
  return filled.includes(1) ? { planes, filled } : undefined;
}
