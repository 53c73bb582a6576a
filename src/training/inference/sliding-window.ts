/** Applies a model to an image of any size. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { ModelSpec } from '../models/index.js';
import { runModel } from './inference-patches.js';
import { slidingWindows, WindowBlender, type WindowOrigin } from './window-blending.js';

interface InferenceImage {
  width: number;
  height: number;
  /** One plane for each input of the model. */
  inputs: Float32Array[];
  /** 1 where the model may read the inputs. */
  inputMask: Uint8Array;
}

/** Maximum number of pixels in one call of the model. */
const MAX_PIXELS = 2 ** 17;

/** Returns the predicted planes, NaN where no window has enough readable pixels. Only windows with a pixel of `wanted` are computed. */
export function predictImage(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  image: InferenceImage,
  wanted = image.inputMask,
): Float32Array[] {
  const { patchSize, target, inputs } = spec;
  // A model for means predicts one value for each patch; the others use larger windows, of which a smaller part overlaps.
  const size = target.kind === 'mean' ? patchSize : 2 * patchSize;
  const windows = slidingWindows(image.width, image.height, size, patchSize / 2);
  const planes = target.kind === 'clear' ? inputs.length : 1;
  const blend = new WindowBlender(image.width, image.height, planes);
  const most = Math.max(1, Math.floor(MAX_PIXELS / size ** 2));
  const needed = windows.filter((origin) => holdsAny(wanted, image, origin, size));
  for (let from = 0; from < needed.length; from += most) {
    const origins = needed.slice(from, from + most);
    const batch = tf.tensor4d(windowBatch(image, origins, size), [
      origins.length,
      size,
      size,
      image.inputs.length,
    ]);
    const values = runModel(tf, model, batch);
    batch.dispose();
    for (const [i, origin] of origins.entries()) {
      const first = i * size * size * planes;
      blend.add(origin, size, (pixel, plane) =>
        target.kind === 'mean' ? values[i] : values[first + pixel * planes + plane],
      );
    }
  }
  return blend.planes();
}

function holdsAny(
  wanted: Uint8Array,
  { width, height }: InferenceImage,
  { row, column }: WindowOrigin,
  size: number,
): boolean {
  for (let y = row; y < Math.min(height, row + size); y++) {
    const line = wanted.subarray(y * width + column, y * width + Math.min(width, column + size));
    if (line.includes(1)) return true;
  }
  return false;
}

/** Returns windows as model inputs: masked pixels have the mean of the window, pixels outside of the image the nearest pixel. */
function windowBatch(
  { width, height, inputs, inputMask }: InferenceImage,
  origins: WindowOrigin[],
  size: number,
): Float32Array {
  const bands = inputs.length;
  const values = new Float32Array(origins.length * size * size * bands);
  for (const [i, { row, column }] of origins.entries()) {
    const at = (pixel: number) => {
      const y = Math.min(height - 1, row + Math.floor(pixel / size));
      return y * width + Math.min(width - 1, column + (pixel % size));
    };
    for (const [b, plane] of inputs.entries()) {
      let sum = 0;
      let count = 0;
      for (let pixel = 0; pixel < size * size; pixel++) {
        if (!inputMask[at(pixel)]) continue;
        sum += plane[at(pixel)];
        count++;
      }
      for (let pixel = 0; pixel < size * size; pixel++)
        values[(i * size * size + pixel) * bands + b] = inputMask[at(pixel)] ? plane[at(pixel)] : sum / count;
    }
  }
  return values;
}
