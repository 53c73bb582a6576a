/** Applies a model to an image of any size: overlapping windows cover it, and their predictions are blended without seams. */

import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { runModel } from './batches.js';
import type { PixelBox } from './halo.js';
import { fillHistory } from './history.js';
import type { ModelSpec } from './models/spec.js';

/** North-western pixel of a window. */
interface WindowOrigin {
  row: number;
  column: number;
}

/**
 * Returns windows of which neighbours share at least `overlap` pixels. The last windows end at the edge of the image; if the image is
 * smaller than a window, windows extend beyond it.
 */
export function slidingWindows(width: number, height: number, size: number, overlap: number): WindowOrigin[] {
  const starts = (length: number) => {
    const found: number[] = [];
    for (let at = 0; at + size < length; at += size - overlap) found.push(at);
    return [...found, Math.max(0, length - size)];
  };
  const columns = starts(width);
  return starts(height).flatMap((row) => columns.map((column) => ({ row, column })));
}

/**
 * Returns all windows that overlap a part of an image and begin at multiples of `stride` in the grid. `offset`: the position of the image's
 * north-western pixel in the grid.
 */
export function latticeWindows(
  { column, row, width, height }: PixelBox,
  size: number,
  stride: number,
  offset: { column: number; row: number },
): WindowOrigin[] {
  const starts = (from: number, count: number, shift: number) => {
    const found: number[] = [];
    const first = Math.floor((from + shift - size) / stride + 1) * stride - shift;
    for (let at = first; at < from + count; at += stride) found.push(at);
    return found;
  };
  const columns = starts(column, width, offset.column);
  return starts(row, height, offset.row).flatMap((row) => columns.map((column) => ({ row, column })));
}

/**
 * Averages overlapping windows. The weight of pixel x of a window of n pixels is min(x + 1/2, n - x - 1/2) along each axis: the distance
 * of its centre from the nearest edge. The weights of windows that overlap by half sum to n / 2 everywhere, so that the average of
 * windows with one value each is linear between the centres of the windows. Invariant: for each pixel, `sums` has the
 * weighted sum of all windows so far, and `weights` the sum of their weights.
 */
export class WindowBlender {
  private readonly sums: Float32Array[];
  private readonly weights: Float32Array;

  constructor(
    private readonly width: number,
    private readonly height: number,
    planes: number,
  ) {
    this.weights = new Float32Array(width * height);
    this.sums = Array.from({ length: planes }, () => new Float32Array(width * height));
  }

  /** Adds a window, which may extend beyond the image. `valueAt` returns the value of a plane at a pixel of the window. */
  add({ row, column }: WindowOrigin, size: number, valueAt: (pixel: number, plane: number) => number): void {
    const { sums, weights } = this;
    const [bottom, right] = [Math.min(size, this.height - row), Math.min(size, this.width - column)];
    for (let y = Math.max(0, -row); y < bottom; y++) {
      for (let x = Math.max(0, -column); x < right; x++) {
        const at = (row + y) * this.width + column + x;
        const weight = Math.min(y + 0.5, size - y - 0.5) * Math.min(x + 0.5, size - x - 0.5);
        weights[at] += weight;
        for (let p = 0; p < sums.length; p++) sums[p][at] += weight * valueAt(y * size + x, p);
      }
    }
  }

  /** Returns the averages, NaN where there was no window. */
  planes(): Float32Array[] {
    return this.sums.map((sums) => sums.map((sum, at) => sum / this.weights[at]));
  }
}

interface InferenceImage {
  width: number;
  height: number;
  /** One plane for each input of the model. */
  inputs: Float32Array[];
  /** 1 where the model may read the inputs. */
  inputMask: Uint8Array;
  /** Number of the first plane of the history among the inputs. Absent if the model reads none. */
  history?: number;
}

/** Maximum number of pixels in one call of the model. */
const MAX_BATCH_PIXELS = 2 ** 17;

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
  const most = Math.max(1, Math.floor(MAX_BATCH_PIXELS / size ** 2));
  for (let from = 0; from < origins.length; from += most) {
    const some = origins.slice(from, from + most);
    const batch = tf.tensor4d(windowBatch(image, some, size, target.kind === 'mean'), [
      some.length,
      size,
      size,
      image.inputs.length,
    ]);
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

/**
 * Returns windows as model inputs: masked pixels have the mean of the window, pixels outside of the image the nearest pixel.
 * `isOneValue`: the model predicts one value for a window.
 */
function windowBatch(
  { width, height, inputs, inputMask, history = inputs.length }: InferenceImage,
  origins: WindowOrigin[],
  size: number,
  isOneValue: boolean,
): Float32Array {
  const bands = inputs.length;
  const pixels = size * size;
  const values = new Float32Array(origins.length * pixels * bands);
  /** Index in the image of each pixel of the window. */
  const from = new Int32Array(pixels);
  for (const [i, { row, column }] of origins.entries()) {
    let readable = 0;
    for (let y = 0, pixel = 0; y < size; y++) {
      const start = clamp(row + y, height) * width;
      for (let x = 0; x < size; x++, pixel++) {
        const at = start + clamp(column + x, width);
        from[pixel] = at;
        readable += inputMask[at];
      }
    }
    for (let b = 0; b < history; b++) {
      const plane = inputs[b];
      let sum = 0;
      for (let pixel = 0; pixel < pixels; pixel++) if (inputMask[from[pixel]]) sum += plane[from[pixel]];
      const mean = sum / readable;
      for (let pixel = 0, to = i * pixels * bands + b; pixel < pixels; pixel++, to += bands)
        values[to] = inputMask[from[pixel]] ? plane[from[pixel]] : mean;
    }
    if (history === bands) continue;
    const planes = inputs.slice(history).map((plane) => Float32Array.from(from, (at) => plane[at]));
    fillHistory(planes, isOneValue);
    for (const [p, plane] of planes.entries())
      for (let pixel = 0, to = i * pixels * bands + history + p; pixel < pixels; pixel++, to += bands)
        values[to] = plane[pixel];
  }
  return values;
}

/** Returns the nearest index of a row or column. */
export const clamp = (at: number, length: number) => Math.min(length - 1, Math.max(0, at));
