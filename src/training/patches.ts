/**
 * Samples of one place: square patches of the planes that go into a model, with what should come out of it.
 *
 * Validation never sees what training saw, in place or in time:
 * - place: it is a side of the tile about a quarter wide, at least one patch away from the training side;
 * - time: where there are several dates, it takes the later ones only (about the last quarter) and training the earlier
 *   ones only. Its side is never trained on at any date.
 *
 * Sides (east, west, south, north) and numbers of later dates are tried in this order until enough patches are usable,
 * which looks at masks only, never at values. A model that removes cloud takes the first where both sides have much the same
 * share of cloud: without cloud to remove, a score says nothing.
 */
import { Mask, type Window } from '../raster/index.js';
import type { Image } from './images.js';
import type { ModelSpec } from './models/spec.js';

/** Share of a patch's pixels that must count. */
const MIN_USABLE = 0.75;
const VALIDATION_SHARE = 0.25;
/** The less cloudy side of a division has at least this part of the other's share of cloud, where there is such a division. */
const CLOUD_BALANCE = 0.5;

export interface PatchSet {
  count: number;
  /** Pixels of a patch's side. */
  size: number;
  /** Planes of the inputs and of the targets. */
  inputBands: number;
  targetBands: number;
  /** Reflectance, [count, size, size, inputBands]. What must not be read has the mean of the patch's other pixels. */
  inputs: Float32Array;
  /** Of a model for means [count, 1], else [count, size, size, targetBands]; 0 where it does not count. */
  targets: Float32Array;
  /** [count, size, size], 1 where a target counts; absent where the targets are means. */
  counts?: Float32Array;
  /** [count, size, size], 1 where there is cloud to be removed; absent without pairs. */
  cloud?: Float32Array;
}

export interface PatchDataset {
  train: PatchSet;
  validation: PatchSet;
  /** Patches side by side, without the overlap that training uses. */
  counts: { train: number; validation: number };
  /** How the patches were divided, for the model card. */
  split: string;
}

/** At most so many patches of a set, spread evenly over it. */
export function somePatches(set: PatchSet, limit: number): PatchSet {
  return patchesAt(set, evenly([...Array(set.count).keys()], limit));
}

/** The first half of a set and the second, which are other dates or other ground; of a single patch both are this one. */
export function halves(set: PatchSet): [first: PatchSet, second: PatchSet] {
  const all = [...Array(set.count).keys()];
  const middle = Math.floor(set.count / 2);
  return [patchesAt(set, all.slice(0, Math.max(1, middle))), patchesAt(set, all.slice(middle))];
}

/** These patches of a set, in this order. */
export function patchesAt(set: PatchSet, chosen: number[]): PatchSet {
  const pick = (values: Float32Array) => {
    const length = values.length / set.count;
    const picked = new Float32Array(chosen.length * length);
    chosen.forEach((n, i) => {
      picked.set(values.subarray(n * length, (n + 1) * length), i * length);
    });
    return picked;
  };
  const { inputs, targets, counts, cloud } = set;
  return {
    ...set,
    count: chosen.length,
    inputs: pick(inputs),
    targets: pick(targets),
    ...(counts && { counts: pick(counts) }),
    ...(cloud && { cloud: pick(cloud) }),
  };
}

export type PatchOutcome = { dataset: PatchDataset } | { skipped: string };

interface Split {
  side: string;
  trainArea: Window;
  validationArea: Window;
  trainDates: Image[];
  validationDates: Image[];
}

/** Cuts the patches of one place, or says why there are too few. All images must have the same size. */
export function cutPatches(spec: ModelSpec, images: Image[]): PatchOutcome {
  const divisions = usableDivisions(spec, images);
  if ('skipped' in divisions) return divisions;
  const { enough } = divisions;
  const { split, counts } = images[0].cloud ? mostBalanced(enough) : enough[0];
  const { patchSize } = spec;
  return {
    dataset: {
      // Training patches overlap by half.
      train: collect(spec, split.trainDates, split.trainArea, patchSize / 2),
      validation: collect(spec, split.validationDates, split.validationArea, patchSize),
      counts,
      split: describe(split, patchSize),
    },
  };
}

/** Why there are too few patches, by the masks of the images and the pixels that count alone; undefined if there are enough. */
export function tooFewPatches(spec: ModelSpec, images: Image[]): string | undefined {
  const divisions = usableDivisions(spec, images);
  return 'skipped' in divisions ? divisions.skipped : undefined;
}

interface Division {
  split: Split;
  counts: PatchDataset['counts'];
}

/** The divisions with enough patches on both sides, the preferred first; at least one. */
function usableDivisions(
  spec: ModelSpec,
  images: Image[],
): { enough: [Division, ...Division[]] } | { skipped: string } {
  const { patchSize, leastPatches, leastValidation } = spec;
  const candidates = splits(images, patchSize).map((split) => ({
    split,
    counts: countPatches(split, patchSize),
  }));
  const enough = candidates.filter(
    ({ counts: { train, validation } }) =>
      train + validation >= leastPatches && train >= leastPatches / 2 && validation >= leastValidation,
  );
  const [first, ...others] = enough;
  return first
    ? { enough: [first, ...others] }
    : { skipped: reasonToSkip(spec, images, candidates[0]?.counts) };
}

function splits(images: Image[], patchSize: number): Split[] {
  const [first] = images;
  if (first === undefined) return [];
  const areas = sides(first.width, first.height, patchSize);
  return divideDates(images).flatMap((inTime) => areas.map((inPlace) => ({ ...inPlace, ...inTime })));
}

/** The four ways to hold out a side; a tile too narrow for a gap has none. */
function sides(
  width: number,
  height: number,
  patchSize: number,
): Pick<Split, 'side' | 'trainArea' | 'validationArea'>[] {
  const held = (length: number) =>
    patchSize * Math.max(1, Math.round(Math.floor(length / patchSize) * VALIDATION_SHARE));
  const across = held(width);
  const down = held(height);
  const trainWidth = width - across - patchSize;
  const trainHeight = height - down - patchSize;
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
  return all.filter(({ trainArea }) => trainArea.width >= patchSize && trainArea.height >= patchSize);
}

/** Earlier dates to train on, later ones to validate on: first about the last quarter, then more, up to half of them. */
function divideDates(dates: Image[]): Pick<Split, 'trainDates' | 'validationDates'>[] {
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

/** The first with much the same share of cloud on both sides, else that with the least difference. */
function mostBalanced<T extends { split: Split }>(candidates: T[]): T {
  const balances = candidates.map(({ split }) => {
    const { trainDates, trainArea, validationDates, validationArea } = split;
    const shares = [cloudShare(trainDates, trainArea), cloudShare(validationDates, validationArea)];
    return Math.min(...shares) / Math.max(...shares, Number.MIN_VALUE);
  });
  const best = Math.min(CLOUD_BALANCE, Math.max(...balances));
  return candidates[balances.findIndex((balance) => balance >= best)];
}

/** Of the pixels that count. */
function cloudShare(images: Image[], { column, row, width, height }: Window): number {
  let counting = 0;
  let cloudy = 0;
  for (const image of images) {
    for (let y = row; y < row + height; y++) {
      for (let at = y * image.width + column, end = at + width; at < end; at++) {
        if (!image.counts[at]) continue;
        counting++;
        cloudy += image.cloud![at];
      }
    }
  }
  return counting === 0 ? 0 : cloudy / counting;
}

function countPatches(split: Split, patchSize: number): PatchDataset['counts'] {
  return {
    train: usableOrigins(split.trainDates, split.trainArea, patchSize, patchSize).length,
    validation: usableOrigins(split.validationDates, split.validationArea, patchSize, patchSize).length,
  };
}

interface Origin {
  image: Image;
  /** Index of the patch's north-western pixel. */
  from: number;
}

function usableOrigins(images: Image[], area: Window, size: number, stride: number): Origin[] {
  const origins: Origin[] = [];
  for (const image of images) {
    for (let row = area.row; row + size <= area.row + area.height; row += stride) {
      for (let column = area.column; column + size <= area.column + area.width; column += stride) {
        const origin = { image, from: row * image.width + column };
        if (isUsablePatch(origin, size)) origins.push(origin);
      }
    }
  }
  return origins;
}

function isUsablePatch({ image, from }: Origin, size: number): boolean {
  let readable = 0;
  let counting = 0;
  for (let y = 0; y < size; y++) {
    for (let at = from + y * image.width, end = at + size; at < end; at++) {
      readable += image.readable[at];
      counting += image.counts[at];
    }
  }
  return readable >= MIN_USABLE * size * size && counting > 0;
}

function collect(spec: ModelSpec, images: Image[], area: Window, stride: number): PatchSet {
  const size = spec.patchSize;
  const origins = evenly(usableOrigins(images, area, size, stride), spec.mostPatches);
  const count = origins.length;
  const pixels = size * size;
  const planes = (of: (image: Image) => ArrayLike<number>[], fill: typeof copyPlane) => {
    const bands = of(images[0]).length;
    const values = new Float32Array(count * pixels * bands);
    origins.forEach((origin, n) => {
      of(origin.image).forEach((plane, b) => {
        fill(origin, size, plane, values.subarray(n * pixels * bands), b, bands);
      });
    });
    return values;
  };
  const shape = { count, size, inputBands: images[0].inputs.length, targetBands: images[0].targets.length };
  const inputs = planes((image) => image.inputs, fillPlane);
  if (spec.target.kind === 'mean')
    return { ...shape, inputs, targets: Float32Array.from(origins, (origin) => meanTarget(origin, size)) };
  return {
    ...shape,
    inputs,
    targets: planes((image) => image.targets, countedPlane),
    counts: planes((image) => [image.counts], copyPlane),
    ...(images[0].cloud && { cloud: planes((image) => [image.cloud!], copyPlane) }),
  };
}

/** At most `limit` of some items, spread evenly over dates and ground. */
function evenly<T>(items: T[], limit: number): T[] {
  if (items.length <= limit) return items;
  return Array.from({ length: limit }, (_, i) => items[Math.floor((i * items.length) / limit)]);
}

function meanTarget(origin: Origin, size: number): number {
  let sum = 0;
  let count = 0;
  for (let i = 0; i < size * size; i++) {
    const at = pixelOf(origin, size, i);
    if (!origin.image.counts[at]) continue;
    sum += origin.image.targets[0][at];
    count++;
  }
  return sum / count;
}

function pixelOf({ image, from }: Origin, size: number, i: number): number {
  return from + Math.floor(i / size) * image.width + (i % size);
}

/** Copies one plane of a patch into band `b` of `bands`. */
function copyPlane(
  origin: Origin,
  size: number,
  plane: ArrayLike<number>,
  patch: Float32Array,
  b: number,
  bands: number,
): void {
  for (let i = 0; i < size * size; i++) patch[i * bands + b] = plane[pixelOf(origin, size, i)];
}

/** Pixels that do not count are 0. */
const countedPlane: typeof copyPlane = (origin, size, plane, patch, b, bands) => {
  for (let i = 0; i < size * size; i++) {
    const at = pixelOf(origin, size, i);
    patch[i * bands + b] = origin.image.counts[at] ? plane[at] : 0;
  }
};

/** Pixels that must not be read take the mean of the others. */
const fillPlane: typeof copyPlane = (origin, size, plane, patch, b, bands) => {
  const { readable } = origin.image;
  let sum = 0;
  let count = 0;
  for (let i = 0; i < size * size; i++) {
    const at = pixelOf(origin, size, i);
    if (!readable[at]) continue;
    sum += plane[at];
    count++;
  }
  for (let i = 0; i < size * size; i++) {
    const at = pixelOf(origin, size, i);
    patch[i * bands + b] = readable[at] ? plane[at] : sum / count;
  }
};

function describe({ side, trainDates, validationDates }: Split, patchSize: number): string {
  const day = (time: number) => new Date(time).toISOString().slice(0, 10);
  const place = `validation: ${side} side, one patch (${patchSize} px) away from training`;
  if (trainDates === validationDates) return `${place}; same dates`;
  const from = Math.min(...validationDates.map(({ time }) => time));
  const dates = (n: number, which = '') => `${n} ${which}${n === 1 ? 'date' : 'dates'}`;
  return `${place}, ${dates(validationDates.length)} from ${day(from)}; training: ${dates(trainDates.length, 'earlier ')}`;
}

function reasonToSkip(
  { patchSize, leastPatches, leastValidation, target }: ModelSpec,
  images: Image[],
  counts: PatchDataset['counts'] | undefined,
): string {
  const [first] = images;
  if (first === undefined)
    return target.kind === 'clear' ? 'no cloudy date with a clear one near it' : 'no dates with all bands';
  const size = `${patchSize}x${patchSize} px`;
  if (counts === undefined) {
    return `${first.width}x${first.height} px are too few for training and validation patches of ${size} with a gap`;
  }
  const { coverage, cloud } = conditions(images);
  const seen = `(coverage ${coverage} %, cloud ${cloud === undefined ? 'not assessed' : `${cloud} %`})`;
  const { train, validation } = counts;
  const lacking = (count: number, which: string, least: number) =>
    `${count} usable ${which}patches of ${size}, at least ${least} are needed ${seen}`;
  if (train + validation < leastPatches) return lacking(train + validation, '', leastPatches);
  return train < leastPatches / 2
    ? lacking(train, 'training ', leastPatches / 2)
    : lacking(validation, 'validation ', leastValidation);
}

/** Percent of pixels with data, and percent of cloud among those that were assessed, over all dates. */
function conditions(images: Image[]): { coverage: number; cloud: number | undefined } {
  let pixels = 0;
  let data = 0;
  let assessed = 0;
  let cloudy = 0;
  for (const { mask } of images) {
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
