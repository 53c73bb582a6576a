/** Replaces the cloudy pixels of a date with the predictions of a model. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { type AcquisitionPixels, cloudInputs, inputMaskOf, isCloudy } from '../data/index.js';
import type { ModelSpec } from '../models/index.js';
import { readsPrior } from './halo-cloud-filling.js';
import { predictImage } from './sliding-window.js';

export interface FilledDate {
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
  const { width, height } = date;
  const inputMask = inputMaskOf(spec, date);
  const wanted = fillablePixels(spec, date);
  if (!wanted.includes(1)) return undefined;
  const own = spec.inputs.map((name) => date.bands[name]!);
  const inputs = readsPrior(model, spec) ? cloudInputs(date, others, spec.inputs, wanted) : own;
  const planes = predictImage(tf, model, spec, { width, height, inputs, inputMask }, wanted);
  return finiteFills(planes, wanted);
}

/** 1 where there is cloud or shadow and the model may read the date. */
export function fillablePixels(spec: ModelSpec, date: AcquisitionPixels): Uint8Array {
  const inputMask = inputMaskOf(spec, date);
  return date.mask.map((code, at) => (isCloudy(code) && inputMask[at] ? 1 : 0));
}

/** Returns the fills of the wanted pixels whose values are finite; undefined if there are none. */
export function finiteFills(planes: Float32Array[], wanted: Uint8Array): FilledDate | undefined {
  const filled = wanted.map((is, at) => (is && planes.every((plane) => Number.isFinite(plane[at])) ? 1 : 0));
  return filled.includes(1) ? { planes, filled } : undefined;
}
