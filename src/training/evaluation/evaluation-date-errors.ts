/** Errors of a model on each date of a cell, from which it is later decided if new dates differ. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { PixelGrid } from '../../grid/index.js';
import { type AcquisitionFiles, differInSize, type ReadRasters, readAcquisitions } from '../data/index.js';
import type { ModelSpec } from '../models/index.js';
import { labelImages, samplePatches } from '../patches/index.js';
import { meanSquaredError } from './evaluate-predictions.js';

/** The error on a sample of the patches of one date. */
export interface DateError {
  /** RFC 3339. */
  datetime: string;
  /** Mean squared error. */
  error: number;
  /** Patches of the sample. */
  patches: number;
}

/** Pixels of the largest and of the smallest sample: 128 and 24 patches of 16 x 16 pixels. */
const MAX_SAMPLE_PIXELS = 2 ** 15;
const MIN_SAMPLE_PIXELS = 24 * 16 ** 2;

/**
 * Returns the errors of the dates that have enough clear patches, in their order. The sample of a date includes ground on which the model
 * was trained, if it was trained on this date. Dates of another size than `size` are left out. Reads one date after another; files in
 * `kept` are not read again. Throws what `readAcquisitions` throws.
 */
export async function dateErrors(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  dates: AcquisitionFiles[],
  { size, kept }: { size?: PixelGrid; kept?: ReadRasters } = {},
): Promise<DateError[]> {
  const pixels = spec.patchSize ** 2;
  const [most, least] = [Math.floor(MAX_SAMPLE_PIXELS / pixels), Math.ceil(MIN_SAMPLE_PIXELS / pixels)];
  const errors: DateError[] = [];
  for (const date of dates) {
    const read = await readAcquisitions([date], kept);
    if ('skipped' in read) continue;
    const [image] = labelImages(spec, read.dates);
    if (size && differInSize(size, image) !== undefined) continue;
    const patches = samplePatches(spec, image, most);
    if (patches.count < least) continue;
    const error = meanSquaredError(tf, model, patches);
    errors.push({ datetime: new Date(date.time).toISOString(), error, patches: patches.count });
  }
  return errors;
}
