/**
 * How a clear date looks: quantiles of its colours, and its texture. For models without a truth (`cloud-removal`), dates that look unlike
 * those of the training stand for a larger error.
 */

import { medianOfSorted } from '../../utils/median.js';
import { type AcquisitionFiles, clearMask, readAcquisitions } from '../data/index.js';
import type { DateError } from '../evaluation/index.js';
import { RGB_BANDS } from '../models/index.js';
import { greyLevels, textureOf } from '../texture/index.js';

const QUANTILES = [0.1, 0.5, 0.9];
/** Reflectance below which ratios say nothing. */
const DARK = 0.01;
/** Minimum part of the pixels that must be clear. */
const MIN_CLEAR_FRACTION = 0.5;
/** Indices of contrast and homogeneity at a distance of one pixel in a texture. */
const [CONTRAST, HOMOGENEITY] = [0, 2];

type Look = number[];

/** Looks of dates, as errors: the mean squared difference from the median look of the dates of the training. */
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
    return QUANTILES.map((q) => Math.log(Math.max(0, sorted[Math.floor(q * (count - 1))]) + DARK));
  });
  const { red, green, blue } = bands;
  const levels = greyLevels({ red: red!, green: green!, blue: blue! }, usable);
  const texture = textureOf({ width, height, levels });
  return texture ? [...colours, Math.log(texture[CONTRAST] + 1), texture[HOMOGENEITY]] : undefined;
}

const medianAt = (looks: Look[], i: number) =>
  medianOfSorted(Float64Array.from(looks, (look) => look[i]).sort());
