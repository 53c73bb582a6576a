/** Makes one tile with the predictions of a model for another tile. */

import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { MadeTile } from '../../derive/index.js';
import type { Tf } from '../../engines/index.js';
import { type DataType, Mask } from '../../raster/index.js';
import { type AcquisitionPixels, mappableMask, readAcquisitions } from '../data/index.js';
import { predictionFailed } from '../errors.js';
import { type LoadModel, PriorFits, predictBlended } from '../halo/index.js';
import { predictImage } from '../inference/index.js';
import type { ModelSpec } from '../models/index.js';
import { encodePredictedTile } from './encode-predicted-tile.js';
import { cloudFreeTile } from './predict-cloud-free-tile.js';
import type { PredictTask } from './predict-task.js';

/** Encoding of predicted indices. Ten thousandths are far below any error of a model. */
const OUTPUT_ENCODING = { dataType: 'int16' as DataType, scale: 1e-4, nodata: -32768, maximum: 32767 };

/** Returns null if no pixel of the tile can be read. `fits`: those of former tiles. Throws TW_TRAIN_PREDICT. */
export async function predictTile(
  tf: Tf,
  spec: ModelSpec,
  task: PredictTask,
  load: LoadModel,
  fits = new PriorFits(),
): Promise<MadeTile | null> {
  if (spec.target.kind === 'clear') return cloudFreeTile(tf, spec, task, load, fits);
  const { date, size, halo } = task;
  const read = await readAcquisitions([date], undefined, size);
  if ('skipped' in read) throw predictionFailed(read.skipped);
  const [pixels] = read.dates;
  const inputMask = mappableMask(pixels, spec.inputs);
  if (!inputMask.includes(1)) return null;
  const plane = halo
    ? await predictBlended(tf, spec, pixels, { ...task, halo }, load)
    : predictAlone(tf, spec, pixels, inputMask, await load(task.model));
  // Predictions can be NaN or infinite if weights or a pixel are too large.
  const valid = inputMask.map((is, at) => (is && Number.isFinite(plane[at]) ? 1 : 0));
  if (!valid.includes(1)) throw predictionFailed('the prediction is not finite for any of its pixels');
  const stored = [storedValues(plane, valid)];
  const codes = pixels.mask.map((code, at) => {
    // The model does not know whether a pixel is clear.
    if (valid[at]) return code;
    // A pixel that the model could not read keeps its code of cloud, shadow or snow.
    const isBlocked = code === Mask.cloud || code === Mask.shadow || code === Mask.snow;
    return isBlocked ? code : Mask.nodata;
  });
  const { dataType, scale, nodata } = OUTPUT_ENCODING;
  const bands = [{ name: spec.name, scale, offset: 0 }];
  return encodePredictedTile(task, pixels, { dataType, nodata, bands, stored }, codes, valid);
}

function predictAlone(
  tf: Tf,
  spec: ModelSpec,
  { width, height, bands }: AcquisitionPixels,
  inputMask: Uint8Array,
  model: LayersModel,
): Float32Array {
  const inputs = spec.inputs.map((name) => bands[name]!);
  const [plane] = predictImage(tf, model, spec, { width, height, inputs, inputMask });
  return plane;
}

function storedValues(plane: Float32Array, valid: Uint8Array): Int16Array {
  const { scale, nodata, maximum } = OUTPUT_ENCODING;
  const stored = new Int16Array(plane.length);
  for (let i = 0; i < plane.length; i++)
    stored[i] = valid[i] ? Math.max(-maximum, Math.min(maximum, Math.round(plane[i] / scale))) : nodata;
  return stored;
}
