/**
 * Samples of one place: square patches of its RGB reflectance with the mean NDVI that they hide.
 *
 * Validation never sees what training saw, in place or in time:
 * - place: it is a side of the tile about a quarter wide, at least one patch away from the training side;
 * - time: where there are several dates, it takes the later ones only (about the last quarter) and training the earlier
 *   ones only. Its side is never trained on at any date.
 *
 * Sides (east, west, south, north) and numbers of later dates are tried in this order until enough patches are usable,
 * which looks at masks only, never at values.
 */
import { Mask, type Window } from '../raster/index.js';

export const PATCH_SIZE = 16;
export const PATCH_BANDS = 3;
const PATCH_PIXELS = PATCH_SIZE * PATCH_SIZE;
export const PATCH_VALUES = PATCH_PIXELS * PATCH_BANDS;

/** Least patches, counted side by side without overlap, in training and validation together. */
export const MIN_PATCHES = 40;
export const MIN_VALIDATION_PATCHES = 8;
const MIN_USABLE_PIXELS = 0.75 * PATCH_PIXELS;
const VALIDATION_SHARE = 0.25;
/** More patches than this, of a large tile or of many dates, add much time and little accuracy: a fixed share is taken. */
const MAX_PATCHES = 480;
/** Training patches overlap by half. */
const TRAIN_STRIDE = PATCH_SIZE / 2;
/** Below this sum of red and near infrared reflectance, NDVI has no meaning. */
const MIN_NDVI_SUM = 1e-6;

/** One date of a place: reflectances (0-1) and mask codes, row by row from the north-west. NaN marks missing values. */
export interface DatePixels {
  /** Milliseconds since 1970. */
  time: number;
  width: number;
  height: number;
  red: Float32Array;
  green: Float32Array;
  blue: Float32Array;
  nir: Float32Array;
  mask: Uint8Array;
}

export interface PatchSet {
  count: number;
  /** RGB reflectance, [count, 16, 16, 3]. */
  inputs: Float32Array;
  /** Mean NDVI of each patch's usable pixels, -1 to 1. */
  targets: Float32Array;
}

export interface PatchDataset {
  train: PatchSet;
  validation: PatchSet;
  /** Patches side by side, without the overlap that training uses. */
  counts: { train: number; validation: number };
  /** How the patches were divided, for the model card. */
  split: string;
}

export type PatchOutcome = { dataset: PatchDataset } | { skipped: string };

interface Split {
  side: string;
  trainArea: Window;
  validationArea: Window;
  trainDates: DatePixels[];
  validationDates: DatePixels[];
}

/** Cuts the patches of one place, or says why there are too few. All dates must have the same size. */
export function cutPatches(dates: DatePixels[]): PatchOutcome {
  const candidates = splits(dates).map((split) => ({ split, counts: countPatches(split) }));
  const enough = candidates.find(
    ({ counts }) =>
      counts.train + counts.validation >= MIN_PATCHES && counts.validation >= MIN_VALIDATION_PATCHES,
  );
  if (enough === undefined) return { skipped: reasonToSkip(dates, candidates[0]?.counts) };
  const { split, counts } = enough;
  return {
    dataset: {
      train: collect(split.trainDates, split.trainArea, TRAIN_STRIDE),
      validation: collect(split.validationDates, split.validationArea, PATCH_SIZE),
      counts,
      split: describe(split),
    },
  };
}

function splits(dates: DatePixels[]): Split[] {
  const [first] = dates;
  if (first === undefined) return [];
  const areas = sides(first.width, first.height);
  return divideDates(dates).flatMap((inTime) => areas.map((inPlace) => ({ ...inPlace, ...inTime })));
}

/** The four ways to hold out a side; a tile too narrow for a gap has none. */
function sides(width: number, height: number): Pick<Split, 'side' | 'trainArea' | 'validationArea'>[] {
  const held = (length: number) =>
    PATCH_SIZE * Math.max(1, Math.round(Math.floor(length / PATCH_SIZE) * VALIDATION_SHARE));
  const across = held(width);
  const down = held(height);
  const trainWidth = width - across - PATCH_SIZE;
  const trainHeight = height - down - PATCH_SIZE;
  const all = [
    {
      side: 'eastern',
      trainArea: { column: 0, row: 0, width: trainWidth, height },
      validationArea: { column: width - across, row: 0, width: across, height },
    },
    {
      side: 'western',
      trainArea: { column: width - trainWidth, row: 0, width: trainWidth, height },
      validationArea: { column: 0, row: 0, width: across, height },
    },
    {
      side: 'southern',
      trainArea: { column: 0, row: 0, width, height: trainHeight },
      validationArea: { column: 0, row: height - down, width, height: down },
    },
    {
      side: 'northern',
      trainArea: { column: 0, row: height - trainHeight, width, height: trainHeight },
      validationArea: { column: 0, row: 0, width, height: down },
    },
  ];
  return all.filter(({ trainArea }) => trainArea.width >= PATCH_SIZE && trainArea.height >= PATCH_SIZE);
}

/** Earlier dates to train on, later ones to validate on: first about the last quarter, then more, up to half of them. */
function divideDates(dates: DatePixels[]): Pick<Split, 'trainDates' | 'validationDates'>[] {
  const times = [...new Set(dates.map(({ time }) => time))].sort((a, b) => a - b);
  if (times.length < 2) return [{ trainDates: dates, validationDates: dates }];
  const divisions = [];
  const least = Math.max(1, Math.round(times.length * VALIDATION_SHARE));
  for (let later = least; later <= Math.max(least, Math.floor(times.length / 2)); later++) {
    const from = times[times.length - later];
    divisions.push({
      trainDates: dates.filter(({ time }) => time < from),
      validationDates: dates.filter(({ time }) => time >= from),
    });
  }
  return divisions;
}

function countPatches(split: Split): PatchDataset['counts'] {
  return {
    train: usableOrigins(split.trainDates, split.trainArea, PATCH_SIZE).length,
    validation: usableOrigins(split.validationDates, split.validationArea, PATCH_SIZE).length,
  };
}

interface Origin {
  date: DatePixels;
  /** Index of the patch's north-western pixel. */
  from: number;
}

function usableOrigins(dates: DatePixels[], area: Window, stride: number): Origin[] {
  const origins: Origin[] = [];
  for (const date of dates) {
    for (let row = area.row; row + PATCH_SIZE <= area.row + area.height; row += stride) {
      for (let column = area.column; column + PATCH_SIZE <= area.column + area.width; column += stride) {
        const origin = { date, from: row * date.width + column };
        if (isUsablePatch(origin)) origins.push(origin);
      }
    }
  }
  return origins;
}

function isUsablePatch(origin: Origin): boolean {
  let usable = 0;
  let withNdvi = 0;
  for (let i = 0; i < PATCH_PIXELS; i++) {
    const at = pixelOf(origin, i);
    if (!isUsable(origin.date, at)) continue;
    usable++;
    if (hasNdvi(origin.date, at)) withNdvi++;
  }
  return usable >= MIN_USABLE_PIXELS && withNdvi > 0;
}

function pixelOf({ date, from }: Origin, i: number): number {
  return from + Math.floor(i / PATCH_SIZE) * date.width + (i % PATCH_SIZE);
}

/** Clear, or not assessed, and with a value in each band. */
function isUsable(date: DatePixels, at: number): boolean {
  const code = date.mask[at];
  return (
    (code === Mask.clear || code === Mask.notAssessed) &&
    Number.isFinite(date.red[at] + date.green[at] + date.blue[at] + date.nir[at])
  );
}

function hasNdvi(date: DatePixels, at: number): boolean {
  return date.nir[at] + date.red[at] > MIN_NDVI_SUM;
}

function ndvi(date: DatePixels, at: number): number {
  const nir = date.nir[at];
  const red = date.red[at];
  return Math.min(1, Math.max(-1, (nir - red) / (nir + red)));
}

function collect(dates: DatePixels[], area: Window, stride: number): PatchSet {
  const origins = evenly(usableOrigins(dates, area, stride), MAX_PATCHES);
  const inputs = new Float32Array(origins.length * PATCH_VALUES);
  const targets = Float32Array.from(origins, meanNdvi);
  origins.forEach((origin, n) => {
    fillPatch(origin, inputs.subarray(n * PATCH_VALUES, (n + 1) * PATCH_VALUES));
  });
  return { count: origins.length, inputs, targets };
}

/** At most `limit` of some items, spread evenly over dates and ground. */
function evenly<T>(items: T[], limit: number): T[] {
  if (items.length <= limit) return items;
  return Array.from({ length: limit }, (_, i) => items[Math.floor((i * items.length) / limit)]);
}

function meanNdvi(origin: Origin): number {
  let sum = 0;
  let count = 0;
  for (let i = 0; i < PATCH_PIXELS; i++) {
    const at = pixelOf(origin, i);
    if (!isUsable(origin.date, at) || !hasNdvi(origin.date, at)) continue;
    sum += ndvi(origin.date, at);
    count++;
  }
  return sum / count;
}

/** Copies a patch's pixels; unusable ones take the mean of the usable ones, band by band. */
function fillPatch(origin: Origin, patch: Float32Array): void {
  const { red, green, blue } = origin.date;
  [red, green, blue].forEach((band, b) => {
    let sum = 0;
    let count = 0;
    for (let i = 0; i < PATCH_PIXELS; i++) {
      const at = pixelOf(origin, i);
      if (!isUsable(origin.date, at)) continue;
      sum += band[at];
      count++;
    }
    for (let i = 0; i < PATCH_PIXELS; i++) {
      const at = pixelOf(origin, i);
      patch[i * PATCH_BANDS + b] = isUsable(origin.date, at) ? band[at] : sum / count;
    }
  });
}

function describe({ side, trainDates, validationDates }: Split): string {
  const day = (time: number) => new Date(time).toISOString().slice(0, 10);
  const place = `validation: ${side} side, one patch (${PATCH_SIZE} px) away from training`;
  if (trainDates === validationDates) return `${place}; same dates`;
  const from = Math.min(...validationDates.map(({ time }) => time));
  const dates = (n: number, which = '') => `${n} ${which}${n === 1 ? 'date' : 'dates'}`;
  return `${place}, ${dates(validationDates.length)} from ${day(from)}; training: ${dates(trainDates.length, 'earlier ')}`;
}

function reasonToSkip(dates: DatePixels[], counts: PatchDataset['counts'] | undefined): string {
  const [first] = dates;
  if (first === undefined) return 'no dates with red, green, blue and near infrared';
  const size = `${PATCH_SIZE}x${PATCH_SIZE} px`;
  if (counts === undefined) {
    return `${first.width}x${first.height} px are too few for training and validation patches of ${size} with a gap`;
  }
  const { coverage, cloud } = conditions(dates);
  const seen = `(coverage ${coverage} %, cloud ${cloud === undefined ? 'not assessed' : `${cloud} %`})`;
  const total = counts.train + counts.validation;
  return total < MIN_PATCHES
    ? `${total} usable patches of ${size}, at least ${MIN_PATCHES} are needed ${seen}`
    : `${counts.validation} usable validation patches of ${size}, at least ${MIN_VALIDATION_PATCHES} are needed ${seen}`;
}

/** Percent of pixels with data, and percent of cloud among those that were assessed, over all dates. */
function conditions(dates: DatePixels[]): { coverage: number; cloud: number | undefined } {
  let pixels = 0;
  let data = 0;
  let assessed = 0;
  let cloudy = 0;
  for (const { mask } of dates) {
    pixels += mask.length;
    for (const code of mask) {
      if (code === Mask.nodata) continue;
      data++;
      if (code === Mask.notAssessed) continue;
      assessed++;
      if (code === Mask.cloud) cloudy++;
    }
  }
  const percent = (part: number, whole: number) => Math.round((100 * part) / whole);
  return {
    coverage: percent(data, pixels),
    cloud: assessed === 0 ? undefined : percent(cloudy, assessed),
  };
}
