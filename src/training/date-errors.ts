/** Errors of a model on each date of a cell, from which it is later decided if new dates differ. */

import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import type { PixelGrid } from '../grid/index.js';
import type { Window } from '../raster/index.js';
import { randomStream, shuffledOrder } from '../utils/random.js';
import { medianOfSorted } from '../utils/sorted.js';
import {
  type AcquisitionFiles,
  clearMask,
  differInSize,
  isCloudy,
  type ReadRasters,
  readAcquisitions,
} from './acquisitions.js';
import { meanSquaredError } from './evaluation.js';
import type { HistoryUse } from './history.js';
import { type LabelledImage, labelImages } from './labelled-images.js';
import { type ModelSpec, RGB_BANDS, withHistory, withPatchSizes } from './models/spec.js';
import { collectPatches, type HistorySource, type Patches, usableOrigins } from './patches.js';
import { dilateMask } from './prior.js';
import { greyLevels, textureOf } from './texture/glcm.js';

/** Radius around cloud and shadow that the sample excludes, because masks miss thin cloud edges. */
const HAZE_RADIUS_PX = 8;
const SAMPLE_SEED = 1;

/**
 * Returns a random sample of at most `limit` patches, without overlap, of the held-out ground or of the other ground; the same image gives
 * the same patches. Pixels near cloud do not count. The result has no patch if too few pixels are clear.
 */
function samplePatches(
  spec: ModelSpec,
  image: LabelledImage,
  heldOut: Window,
  trained: boolean,
  limit: number,
  history: HistorySource | undefined,
): Patches {
  const { width, height, mask, inputMask, targetMask } = image;
  const hazy = dilateMask(
    mask.map((code) => (isCloudy(code) ? 1 : 0)),
    width,
    height,
    HAZE_RADIUS_PX,
  );
  const withoutHaze = (usable: Uint8Array) => usable.map((is, at) => (hazy[at] ? 0 : is));
  const clear = { ...image, inputMask: withoutHaze(inputMask), targetMask: withoutHaze(targetMask) };
  const { patchSize } = spec;
  const ground = trained ? { column: 0, row: 0, width, height } : heldOut;
  const isOutside = ({ from }: { from: number }) => {
    const [column, row] = [from % width, Math.floor(from / width)];
    return (
      column + patchSize <= heldOut.column ||
      column >= heldOut.column + heldOut.width ||
      row + patchSize <= heldOut.row ||
      row >= heldOut.row + heldOut.height
    );
  };
  const origins = usableOrigins([clear], ground, patchSize, patchSize).filter(
    (origin) => !trained || isOutside(origin),
  );
  const chosen = shuffledOrder(origins.length, randomStream(SAMPLE_SEED).next).subarray(0, limit).sort();
  return collectPatches(
    spec,
    [clear],
    Array.from(chosen, (i) => origins[i]),
    history,
  );
}

/** The error on a sample of the patches of one date, on one of two grounds. */
export interface DateError {
  /** RFC 3339. */
  datetime: string;
  /** Mean squared error. */
  error: number;
  /** Patches of the sample. */
  patches: number;
  /** True for the ground on which the model was trained, and its surroundings. Absent for the ground held out from the training. */
  trained?: true;
}

/** Files of the dates that are the history of a place. */
export interface HistoryFiles {
  dates: AcquisitionFiles[];
  use: HistoryUse;
}

/** Reads dates at `size`, by default that of the first; dates that cannot be read together with the first are left out. */
export async function imagesOf(
  spec: ModelSpec,
  dates: AcquisitionFiles[],
  size?: PixelGrid,
  kept?: ReadRasters,
): Promise<LabelledImage[]> {
  const images: LabelledImage[] = [];
  for (const date of dates) {
    const read = await readAcquisitions([date], kept, size);
    if ('skipped' in read) continue;
    const [image] = labelImages(spec, read.dates);
    if (differInSize(images[0] ?? image, image) === undefined) images.push(image);
  }
  return images;
}

/** Pixels of the largest sample of a ground, and of the smallest ones: 64, and 8 and 24 patches of 16 x 16 pixels. */
const MAX_SAMPLE_PIXELS = 2 ** 14;
const MIN_HELD_OUT_PIXELS = 8 * 16 ** 2;
const MIN_TRAINED_PIXELS = 24 * 16 ** 2;

/**
 * Returns the errors of the dates that have enough clear patches, in their order, on the ground `heldOut` and on the other ground. Dates of
 * another size than `size` are left out. Reads one date after another; files in `kept` are not read again. Throws what `readAcquisitions`
 * throws.
 */
export async function dateErrors(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  dates: AcquisitionFiles[],
  heldOut: Window,
  { size, kept, history }: { size?: PixelGrid; kept?: ReadRasters; history?: HistoryFiles } = {},
): Promise<DateError[]> {
  const source = history && { images: await imagesOf(spec, history.dates, size, kept), use: history.use };
  const side = Math.min(heldOut.width, heldOut.height);
  const sized = withPatchSizes(spec).find(({ patchSize }) => patchSize <= side) ?? spec;
  const sampled = source ? withHistory(sized) : sized;
  const pixels = sized.patchSize ** 2;
  const most = Math.floor(MAX_SAMPLE_PIXELS / pixels);
  const errors: DateError[] = [];
  for (const date of dates) {
    const read = await readAcquisitions([date], kept);
    if ('skipped' in read) continue;
    const [image] = labelImages(spec, read.dates);
    if (size && differInSize(size, image) !== undefined) continue;
    for (const trained of [false, true]) {
      const patches = samplePatches(sampled, image, heldOut, trained, most, source);
      if (patches.count * pixels < (trained ? MIN_TRAINED_PIXELS : MIN_HELD_OUT_PIXELS)) continue;
      errors.push({
        datetime: new Date(date.time).toISOString(),
        error: meanSquaredError(tf, model, patches),
        patches: patches.count,
        ...(trained && { trained }),
      });
    }
  }
  return errors;
}

const COLOUR_QUANTILES = [0.1, 0.5, 0.9];
/** Reflectance below which ratios say nothing. */
const DARK_REFLECTANCE = 0.01;
/** Minimum part of the pixels that must be clear. */
const MIN_CLEAR_FRACTION = 0.5;
/** Indices of contrast and homogeneity at a distance of one pixel in a texture. */
const [CONTRAST, HOMOGENEITY] = [0, 2];

/** How a clear date looks: quantiles of its colours, and its texture. */
type Look = number[];

/**
 * Looks of dates, as errors: the mean squared difference from the median look of the dates of the training. For models without a truth
 * (`cloud-removal`), dates that look unlike those of the training stand for a larger error.
 */
export async function lookErrors(
  known: AcquisitionFiles[],
  fresh: AcquisitionFiles[],
): Promise<{ known: DateError[]; fresh: DateError[] }> {
  const before = await looksOf(known);
  const after = await looksOf(fresh);
  const errorsOf = (looks: { time: number; look: Look }[]): DateError[] =>
    looks.flatMap(({ time, look }) => {
      const others = before.filter((one) => one.look !== look).map((one) => one.look);
      if (others.length === 0) return [];
      const differences = look.map((value, i) => (value - medianAt(others, i)) ** 2);
      const error = differences.reduce((sum, one) => sum + one, 0) / look.length;
      return [{ datetime: new Date(time).toISOString(), error, patches: 1 }];
    });
  return { known: errorsOf(before), fresh: errorsOf(after) };
}

async function looksOf(dates: AcquisitionFiles[]): Promise<{ time: number; look: Look }[]> {
  const looks = [];
  for (const date of dates) {
    const look = await lookOf(date);
    if (look) looks.push({ time: date.time, look });
  }
  return looks;
}

/** Returns undefined if too few pixels are clear. */
async function lookOf(date: AcquisitionFiles): Promise<Look | undefined> {
  const read = await readAcquisitions([date]);
  if ('skipped' in read) return undefined;
  const [pixels] = read.dates;
  const { width, height, bands } = pixels;
  const usable = clearMask(pixels, RGB_BANDS);
  const count = usable.reduce((sum, is) => sum + is, 0);
  if (count < MIN_CLEAR_FRACTION * usable.length) return undefined;
  const colours = RGB_BANDS.flatMap((name) => {
    const sorted = bands[name]!.filter((_, at) => usable[at]).sort();
    return COLOUR_QUANTILES.map((q) =>
      Math.log(Math.max(0, sorted[Math.floor(q * (count - 1))]) + DARK_REFLECTANCE),
    );
  });
  const { red, green, blue } = bands;
  const levels = greyLevels({ red: red!, green: green!, blue: blue! }, usable);
  const texture = textureOf({ width, height, levels });
  return texture ? [...colours, Math.log(texture[CONTRAST] + 1), texture[HOMOGENEITY]] : undefined;
}

const medianAt = (looks: Look[], i: number) =>
  medianOfSorted(Float64Array.from(looks, (look) => look[i]).sort());
