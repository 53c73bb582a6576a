/** Applies a model to an image of any size. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { ModelSpec } from '../models/index.js';
import type { PixelBox } from './halo-image.js';
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
  const { patchSize, target } = spec;
  // A model for means predicts one value for each patch; the others use larger windows, of which a smaller part overlaps.
  const size = target.kind === 'mean' ? patchSize : 2 * patchSize;
  const windows = slidingWindows(image.width, image.height, size, patchSize / 2);
  const { width, height } = image;
  const whole = { column: 0, row: 0, width, height };
  const needed = windows.filter((origin) =>
    holdsAny(wanted, image, { ...origin, width: size, height: size }),
  );
  return predictWindows(tf, model, spec, image, { origins: needed, size, box: whole });
}

interface PredictedWindows {
  origins: WindowOrigin[];
  /** Side of a window. */
  size: number;
  /** The part of the image that is returned. */
  box: PixelBox;
}

/** Returns the blended predictions of windows, NaN for pixels that no window covers. */
export function predictWindows(
  tf: Tf,
  model: LayersModel,
  { target, inputs }: ModelSpec,
  image: InferenceImage,
  { origins, size, box }: PredictedWindows,
): Float32Array[] {
  const planes = target.kind === 'clear' ? inputs.length : 1;
  const blend = new WindowBlender(box.width, box.height, planes);
  const most = Math.max(1, Math.floor(MAX_PIXELS / size ** 2));
  for (let from = 0; from < origins.length; from += most) {
    const some = origins.slice(from, from + most);
    const batch = tf.tensor4d(windowBatch(image, some, size), [some.length, size, size, image.inputs.length]);
    const values = runModel(tf, model, batch);
    batch.dispose();
    for (const [i, { row, column }] of some.entries()) {
      const first = i * size * size * planes;
      blend.add({ row: row - box.row, column: column - box.column }, size, (pixel, plane) =>
        target.kind === 'mean' ? values[i] : values[first + pixel * planes + plane],
      );
    }
  }
  return blend.planes();
}

/** True if a mask has a 1 within a part of an image, which may extend beyond it. */
export function holdsAny(
  mask: Uint8Array,
  { width, height }: Pick<InferenceImage, 'width' | 'height'>,
  box: PixelBox,
): boolean {
  const left = Math.max(0, box.column);
  const right = Math.min(width, box.column + box.width);
  for (let y = Math.max(0, box.row); y < Math.min(height, box.row + box.height); y++)
    if (mask.subarray(y * width + left, y * width + right).includes(1)) return true;
  return false;
}

/** Returns windows as model inputs: masked pixels have the mean of the window, pixels outside of the image the nearest pixel. */
function windowBatch(
  { width, height, inputs, inputMask }: InferenceImage,
  origins: WindowOrigin[],
  size: number,
): Float32Array {
  const bands = inputs.length;
  const pixels = size * size;
  const values = new Float32Array(origins.length * pixels * bands);
  /** Index in the image of each pixel of the window, or -1 if it is masked. */
  const from = new Int32Array(pixels);
  for (const [i, { row, column }] of origins.entries()) {
    let readable = 0;
    for (let y = 0, pixel = 0; y < size; y++) {
      const start = clamp(row + y, height) * width;
      for (let x = 0; x < size; x++, pixel++) {
        const at = start + clamp(column + x, width);
        from[pixel] = inputMask[at] ? at : -1;
        readable += inputMask[at];
      }
    }
    for (let b = 0; b < bands; b++) {
      const plane = inputs[b];
      let sum = 0;
      for (let pixel = 0; pixel < pixels; pixel++) if (from[pixel] >= 0) sum += plane[from[pixel]];
      const mean = sum / readable;
      for (let pixel = 0, to = i * pixels * bands + b; pixel < pixels; pixel++, to += bands)
        values[to] = from[pixel] >= 0 ? plane[from[pixel]] : mean;
    }
  }
  return values;
}

/** Returns the nearest index of a row or column. */
export const clamp = (at: number, length: number) => Math.min(length - 1, Math.max(0, at));
