/**
 * Samples of one place: square patches of the planes that go into a model, with what should come out of it.
 *
 * Validation never sees ground that training saw (hold-out.ts). If the job holds out dates, training uses the earlier ones and
 * validation the later ones. Sides are tried in order until enough patches are usable. If no side has enough, the place uses all its
 * dates for both, and only the ground differs. The choice looks at masks only, never at values.
 */
import { Mask, type Window } from '../../raster/index.js';
import type { ModelSpec } from '../models/index.js';
import { SELECTION_FRACTION, type Side, type SpatialSplit, spatialSplits } from './hold-out.js';
import type { LabelledImage } from './labelled-images.js';

/** Share of a patch's pixels that must be readable. */
const MIN_READABLE_FRACTION = 0.75;

export interface Patches {
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
  /**
   * [count, size, size], 1 where a target counts; absent where the targets are means. For the removal of cloud, selection and
   * validation count only the pixels that are filled.
   */
  targetMask?: Float32Array;
  /** [count, size, size], 1 where there is cloud to be removed; absent without pairs. */
  cloud?: Float32Array;
  /** [count, size, size, targetBands], the cloudy date as it is; absent without pairs. */
  cloudy?: Float32Array;
}

export interface TrainValidationPatches {
  train: Patches;
  /** Patches of the training side that no step uses: the best epoch is chosen on them. Undefined if none is usable. */
  selection?: Patches;
  validation: Patches;
  /** Patches side by side, without the overlap that training uses. `train` includes those for selection. */
  counts: { train: number; validation: number };
  /** How the patches were divided, for the model card. */
  split: string;
  holdOut: AppliedHoldOut;
  /** Indices of the images of the validation dates. */
  validationImages: number[];
}

/** How a place was divided, as its model card records it. */
export interface AppliedHoldOut {
  side: Side;
  /** Pixels between the training and the validation ground of this and of every other place. */
  gap: number;
  /** First date that is held out, RFC 3339. Absent if training and validation use the same dates. */
  from?: string;
}

/** The same set with only the pixels counted that a model that removes cloud fills: those under cloud or shadow. */
export function filledOnly(set: Patches): Patches {
  const { targetMask, cloud } = set;
  return targetMask && cloud ? { ...set, targetMask: targetMask.map((is, at) => is * cloud[at]) } : set;
}

/** At most so many patches of a set, spread evenly over it. */
export function subsamplePatches(set: Patches, limit: number): Patches {
  return selectPatches(set, strideSample([...Array(set.count).keys()], limit));
}

/** These patches of a set, in this order. */
export function selectPatches(set: Patches, chosen: number[]): Patches {
  const pick = (values: Float32Array) => {
    const length = values.length / set.count;
    const picked = new Float32Array(chosen.length * length);
    chosen.forEach((n, i) => {
      picked.set(values.subarray(n * length, (n + 1) * length), i * length);
    });
    return picked;
  };
  const { inputs, targets, targetMask, cloud, cloudy } = set;
  return {
    ...set,
    count: chosen.length,
    inputs: pick(inputs),
    targets: pick(targets),
    ...(targetMask && { targetMask: pick(targetMask) }),
    ...(cloud && { cloud: pick(cloud) }),
    ...(cloudy && { cloudy: pick(cloudy) }),
  };
}

export type PatchResult = { dataset: TrainValidationPatches } | { skipped: string };

interface Split {
  ground: SpatialSplit;
  trainDates: LabelledImage[];
  validationDates: LabelledImage[];
  /** First time that is held out; undefined if both have the same dates. */
  from?: number;
}

/**
 * Cuts the patches of one place, or says why there are too few. All images must have the same size. `validationFrom`: the first
 * time that the job holds out, milliseconds since 1970.
 */
export function makePatches(spec: ModelSpec, images: LabelledImage[], validationFrom?: number): PatchResult {
  const division = usableDivision(spec, images, validationFrom);
  if ('skipped' in division) return division;
  const { split, counts } = division;
  const { patchSize } = spec;
  const { ground, trainDates, validationDates, from } = split;
  // Training patches overlap by half.
  const learned = cloudyOrigins(trainDates, ground.train, patchSize, patchSize / 2);
  const chosen = cloudyOrigins(trainDates, ground.selection, patchSize, patchSize);
  // Without a usable patch in its ground, the last of the training patches are for selection.
  if (chosen.length === 0)
    chosen.push(...learned.splice(Math.ceil(learned.length * (1 - SELECTION_FRACTION))));
  const train = collectPatches(spec, images, learned);
  const selection = filledOnly(collectPatches(spec, images, chosen));
  const validation = filledOnly(
    collectPatches(spec, images, cloudyOrigins(validationDates, ground.validation, patchSize, patchSize)),
  );
  return {
    dataset: {
      ...{ train, validation, counts },
      ...(selection.count > 0 && { selection }),
      split: describe(split, patchSize),
      holdOut: {
        ...{ side: ground.side, gap: patchSize },
        ...(from !== undefined && { from: new Date(from).toISOString() }),
      },
      validationImages: split.validationDates.map((image) => images.indexOf(image)),
    },
  };
}

/** Why there are too few patches, by the masks of the images and the pixels that count alone; undefined if there are enough. */
export function tooFewPatches(
  spec: ModelSpec,
  images: LabelledImage[],
  validationFrom?: number,
): string | undefined {
  const division = usableDivision(spec, images, validationFrom);
  return 'skipped' in division ? division.skipped : undefined;
}

interface Division {
  split: Split;
  counts: TrainValidationPatches['counts'];
}

/** The first division with enough patches on both sides. */
function usableDivision(
  spec: ModelSpec,
  images: LabelledImage[],
  validationFrom: number | undefined,
): Division | { skipped: string } {
  const { patchSize, minPatches, minValidationPatches } = spec;
  const divisions = candidateSplits(images, validationFrom, patchSize).map((split) => ({
    split,
    counts: countPatches(split, patchSize),
  }));
  const usable = divisions.find(
    ({ counts: { train, validation } }) =>
      train + validation >= minPatches && train >= minPatches / 2 && validation >= minValidationPatches,
  );
  return usable ?? { skipped: reasonToSkip(spec, images, splitWithMostPatches(divisions)?.counts) };
}

/** All sides with divided dates, if there are dates on both sides of `from`; then all sides with the same dates. */
function candidateSplits(images: LabelledImage[], from: number | undefined, patchSize: number): Split[] {
  const [first] = images;
  if (!first) return [];
  const grounds = spatialSplits(first, coveredWindow(images), patchSize);
  const same = grounds.map((ground) => ({ ground, trainDates: images, validationDates: images }));
  if (from === undefined) return same;
  const trainDates = images.filter(({ time }) => time < from);
  const validationDates = images.filter(({ time }) => time >= from);
  if (trainDates.length === 0 || validationDates.length === 0) return same;
  return [...grounds.map((ground) => ({ ground, trainDates, validationDates, from })), ...same];
}

/** The smallest window with all pixels that hold data at some date. */
function coveredWindow(images: LabelledImage[]): Window {
  const { width, height } = images[0];
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (const { mask } of images)
    for (let at = 0; at < mask.length; at++) {
      if (mask[at] === Mask.nodata) continue;
      const [column, row] = [at % width, Math.floor(at / width)];
      left = Math.min(left, column);
      right = Math.max(right, column + 1);
      top = Math.min(top, row);
      bottom = Math.max(bottom, row + 1);
    }
  return { column: left, row: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
}

/** The candidate that is nearest to enough, for the reason why a place is skipped. */
function splitWithMostPatches<T extends { counts: TrainValidationPatches['counts'] }>(
  candidates: T[],
): T | undefined {
  const total = ({ counts: { train, validation } }: T) => train + validation;
  return candidates.toSorted((a, b) => total(b) - total(a))[0];
}

function countPatches(split: Split, patchSize: number): TrainValidationPatches['counts'] {
  const { ground, trainDates, validationDates } = split;
  const count = (area: Window) => cloudyOrigins(trainDates, area, patchSize, patchSize).length;
  const train = count(ground.train);
  return {
    // Without a patch to train on, those for selection are of no use.
    train: train === 0 ? 0 : train + count(ground.selection),
    validation: cloudyOrigins(validationDates, ground.validation, patchSize, patchSize).length,
  };
}

/** Usable patches; for the removal of cloud those with cloud, because the others teach and say nothing. */
function cloudyOrigins(images: LabelledImage[], area: Window, patchSize: number, stride: number): Origin[] {
  const origins = usableOrigins(images, area, patchSize, stride);
  return origins.filter((origin) => !origin.image.cloud || hasCloud(origin, patchSize));
}

interface Origin {
  image: LabelledImage;
  /** Index of the patch's north-western pixel. */
  from: number;
}

function usableOrigins(images: LabelledImage[], area: Window, size: number, stride: number): Origin[] {
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

/** True if a pixel whose target is known is under cloud or its shadow. */
function hasCloud({ image, from }: Origin, size: number): boolean {
  for (let y = 0; y < size; y++)
    for (let at = from + y * image.width, end = at + size; at < end; at++)
      if (image.targetMask[at] && image.cloud![at]) return true;
  return false;
}

function isUsablePatch({ image, from }: Origin, size: number): boolean {
  let readable = 0;
  let counting = 0;
  for (let y = 0; y < size; y++) {
    for (let at = from + y * image.width, end = at + size; at < end; at++) {
      readable += image.inputMask[at];
      counting += image.targetMask[at];
    }
  }
  return readable >= MIN_READABLE_FRACTION * size * size && counting > 0;
}

function collectPatches(spec: ModelSpec, images: LabelledImage[], usable: Origin[]): Patches {
  const size = spec.patchSize;
  const origins = strideSample(usable, spec.maxPatches);
  const count = origins.length;
  const pixels = size * size;
  const planes = (of: (image: LabelledImage) => ArrayLike<number>[], fill: typeof copyPlane) => {
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
    targetMask: planes((image) => [image.targetMask], copyPlane),
    ...(images[0].cloud && { cloud: planes((image) => [image.cloud!], copyPlane) }),
    ...(images[0].cloudy && { cloudy: planes((image) => image.cloudy!, fillPlane) }),
  };
}

/** At most `limit` of some items, spread evenly over dates and ground. */
function strideSample<T>(items: T[], limit: number): T[] {
  if (items.length <= limit) return items;
  return Array.from({ length: limit }, (_, i) => items[Math.floor((i * items.length) / limit)]);
}

function meanTarget(origin: Origin, size: number): number {
  let sum = 0;
  let count = 0;
  for (let i = 0; i < size * size; i++) {
    const at = pixelOf(origin, size, i);
    if (!origin.image.targetMask[at]) continue;
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
    patch[i * bands + b] = origin.image.targetMask[at] ? plane[at] : 0;
  }
};

/** Pixels that must not be read take the mean of the others. */
const fillPlane: typeof copyPlane = (origin, size, plane, patch, b, bands) => {
  const { inputMask } = origin.image;
  let sum = 0;
  let count = 0;
  for (let i = 0; i < size * size; i++) {
    const at = pixelOf(origin, size, i);
    if (!inputMask[at]) continue;
    sum += plane[at];
    count++;
  }
  for (let i = 0; i < size * size; i++) {
    const at = pixelOf(origin, size, i);
    patch[i * bands + b] = inputMask[at] ? plane[at] : sum / count;
  }
};

function describe({ ground, trainDates, validationDates, from }: Split, patchSize: number): string {
  const where = `validation: ${ground.side} side, one patch (${patchSize} px) away from the training ground of every place`;
  if (from === undefined) return `${where}; same dates`;
  const dates = (n: number, which = '') => `${n} ${which}${n === 1 ? 'date' : 'dates'}`;
  const day = new Date(from).toISOString().slice(0, 10);
  return `${where}, ${dates(validationDates.length)} from ${day}; training: ${dates(trainDates.length, 'earlier ')}`;
}

function reasonToSkip(
  { patchSize, minPatches, minValidationPatches, target }: ModelSpec,
  images: LabelledImage[],
  counts: TrainValidationPatches['counts'] | undefined,
): string {
  const [first] = images;
  if (first === undefined)
    return target.kind === 'clear' ? 'no cloudy date with a clear one near it' : 'no dates with all bands';
  const size = `${patchSize}x${patchSize} px`;
  if (counts === undefined) {
    const { width, height } = coveredWindow(images);
    return `${width}x${height} px with data are too few for training and validation patches of ${size} with a gap`;
  }
  const { coverage, cloud } = conditions(images);
  const seen = `(coverage ${coverage} %, cloud ${cloud === undefined ? 'not assessed' : `${cloud} %`})`;
  const { train, validation } = counts;
  const cloudy = first.cloud ? ' with cloud' : '';
  const lacking = (count: number, which: string, least: number) =>
    `${count} usable ${which}patches${cloudy} of ${size}, at least ${least} are needed ${seen}`;
  if (train + validation < minPatches) return lacking(train + validation, '', minPatches);
  return train < minPatches / 2
    ? lacking(train, 'training ', minPatches / 2)
    : lacking(validation, 'validation ', minValidationPatches);
}

/** Percent of pixels with data, and percent of cloud among those that were assessed, over all dates. */
function conditions(images: LabelledImage[]): { coverage: number; cloud: number | undefined } {
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
