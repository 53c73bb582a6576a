/**
 * Upload of a model that was trained outside of its node. Anyone with write access can upload any numbers, but only numbers: the node
 * itself builds the topology and the card, except for the measured values.
 */

import { ENGINE_NAMES } from '../../engines/index.js';
import { parseInstant } from '../../query/index.js';
import { wrongModel } from '../errors.js';
import type { TrainedCell } from '../learners/index.js';
import type { ModelFiles } from '../models/index.js';

/** A `TrainedCell` as JSON. */
export interface ModelUpload
  extends Omit<TrainedCell, 'files' | 'epochs' | 'bestEpoch' | 'predictions' | 'start'> {
  bestEpoch?: number;
  /** Consecutive little-endian float32, as base64. */
  weights: string;
  predictions?: { truth: number[]; predicted: number[] };
}

/** Maximum size of an upload. The largest built-in model has 0.95 MB of weights, 1.3 MB as base64. */
export const MAX_UPLOAD_BYTES = 8 * 2 ** 20;

const number = { type: 'number' };
const positive = { type: 'number', minimum: 0 };
const count = { type: 'integer', minimum: 0 };
const text = { type: 'string', maxLength: 1000 };
const object = (properties: Record<string, object>, optional: Record<string, object> = {}) => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties),
  properties: { ...properties, ...optional },
});
const means = { psnr: number, ssim: number, msSsim: object({ value: number, scales: count }) };
const images = object({ psnr: count, ssim: count, msSsim: count });
const metrics = object({ mse: positive, r2: number }, { ...means, images });
const tile = object({ images, dates: { type: 'array', maxItems: 10, items: text } }, means);
const values = { type: 'array', items: number, maxItems: 100_000 };

/** JSON Schema of the engine used, as returned by `selectEngine`. */
export const uploadedEngineSchema = object({
  name: { enum: ENGINE_NAMES },
  version: text,
  why: { type: 'array', maxItems: 10, items: object({ engine: { enum: ENGINE_NAMES }, reason: text }) },
});

/** JSON Schema of a ModelUpload. */
export const modelUploadSchema = object(
  {
    weights: { type: 'string', maxLength: MAX_UPLOAD_BYTES },
    losses: {
      type: 'array',
      minItems: 1,
      maxItems: 10_000,
      items: object(
        { epoch: { type: 'integer', minimum: 1 }, train: number, validation: number },
        { selection: number },
      ),
    },
    metrics: object({ train: metrics, validation: metrics }, { tile }),
    spread: object({ count, mean: number, squares: positive }),
    baseline: object(
      { mean: metrics, linear: metrics },
      { unchanged: metrics, nearest: metrics, median: metrics },
    ),
    patches: object({ train: count, validation: count }),
    split: text,
    bytesRead: count,
    seconds: positive,
  },
  {
    predictions: object({ truth: values, predicted: values }),
    // Clients of older versions do not send these.
    bestEpoch: { type: 'integer', minimum: 0 },
    holdOut: object(
      { side: { enum: ['eastern', 'western', 'southern', 'northern'] }, gap: count },
      {
        from: { type: 'string', format: 'date-time' },
        window: object({ column: count, row: count, width: count, height: count }),
      },
    ),
    dateErrors: {
      type: 'array',
      maxItems: 10_000,
      items: object({ datetime: { type: 'string', format: 'date-time' }, error: positive, patches: count }),
    },
    displayRange: { type: 'array', minItems: 2, maxItems: 2, items: number },
  },
);

export function encodeUpload({
  files,
  epochs: _epochs,
  start: _start,
  predictions,
  ...measured
}: TrainedCell): ModelUpload {
  return {
    ...measured,
    weights: Buffer.from(files['weights.bin']).toString('base64'),
    ...(predictions && {
      predictions: { truth: [...predictions.truth], predicted: [...predictions.predicted] },
    }),
  };
}

/** Returns the model with the topology of `blank`, an untrained model of its kind. Throws TW_TRAIN_WRONG_MODEL, TW_QUERY_INSTANT. */
export function decodeUpload(
  { weights, predictions, ...measured }: ModelUpload,
  blank: ModelFiles,
): TrainedCell {
  const bytes = Uint8Array.from(Buffer.from(weights, 'base64'));
  const wanted = blank['weights.bin'].byteLength;
  if (bytes.byteLength !== wanted)
    throw wrongModel(`it has ${bytes.byteLength} bytes of weights, but a model of its kind has ${wanted}`);
  if (!new Float32Array(bytes.buffer).every(Number.isFinite)) throw wrongModel('a weight is not finite');
  const { losses, bestEpoch = losses.length, holdOut, displayRange } = measured;
  if (losses.some(({ epoch }, i) => epoch !== i + 1)) throw wrongModel('its epochs are not numbered from 1');
  if (bestEpoch > losses.length)
    throw wrongModel(`its best epoch is ${bestEpoch}, but it has ${losses.length} epochs`);
  if (displayRange && displayRange[0] >= displayRange[1]) throw wrongModel('its display range is empty');
  if (holdOut?.from !== undefined) parseInstant(holdOut.from, 'holdOut.from');
  const { truth = [], predicted = [] } = predictions ?? {};
  if (truth.length !== predicted.length) throw wrongModel('not every prediction has a true value');
  return {
    ...measured,
    files: { 'model.json': blank['model.json'], 'weights.bin': bytes },
    epochs: losses.length,
    bestEpoch,
    ...(predictions && {
      predictions: { truth: Float32Array.from(truth), predicted: Float32Array.from(predicted) },
    }),
  };
}
