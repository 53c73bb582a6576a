/**
 * Samples of one cell: square patches of the input planes of a model, with their targets.
 *
 * Validation never uses ground that training uses (hold-out.ts). If the job holds out dates, training uses the earlier dates and
 * validation the later ones. Sides are tried in order until one has enough usable patches. If none has, the cell uses all its dates for
 * both, and only the ground differs. The choice depends only on masks, never on values.
 */
import { cloudCoverPercent, coveragePercent, Mask, maskHistogram, type Window } from '../raster/index.js';
import { plural } from '../utils/text.js';
import { type DayPair, dayOf, daysOf, isComposite, isSamePass, passesOf, timesOf } from './dates.js';
import { fillHistory, type HistoryUse, hasUsableHistory, historyPlanes } from './history.js';
import {
  type HeldOutDates,
  isHeldOut,
  isNearHeldOut,
  SELECTION_FRACTION,
  type Side,
  type SpatialSplit,
  spatialSplits,
} from './hold-out.js';
import { copiesOf, type LabelledImage } from './labelled-images.js';
import {
  historyLayout,
  inputPlanes,
  type ModelSpec,
  receptiveField,
  targetRange,
  withHistory,
  withPatchSizes,
} from './models/spec.js';

/** Minimum fraction of readable pixels in a patch. */
const MIN_READABLE_FRACTION = 0.75;

export interface Patches {
  count: number;
  /** Side of a patch in pixels. */
  size: number;
  /** Numbers of planes of inputs and targets. */
  inputBands: number;
  targetBands: number;
  /**
   * Reflectance, [count, size, size, inputBands]. Masked pixels have the mean of the other pixels of the patch. If the model reads the
   * history, its planes follow those of the date.
   */
  inputs: Float32Array;
  /** [count, 1] if the target is a mean, otherwise [count, size, size, targetBands], with 0 where it does not count. */
  targets: Float32Array;
  /**
   * [count, size, size], 1 where a target counts. Absent if the target is a mean. For cloud removal, selection and validation count only
   * cloudy pixels.
   */
  targetMask?: Float32Array;
  /** [count, size, size], 1 where there is cloud to be removed. Absent without pairs. */
  cloud?: Float32Array;
  /** [count, size, size, targetBands], the cloudy date, unchanged. Absent without pairs. */
  cloudy?: Float32Array;
  /** Predictions beyond it are set to its ends. */
  range?: [low: number, high: number];
}

const PATCH_ARRAYS = ['inputs', 'targets', 'targetMask', 'cloud', 'cloudy'] as const;

export interface TrainValidationPatches {
  train: Patches;
  /** Patches of the training side that no training step uses; the best epoch is chosen on them. Undefined if none is usable. */
  selection?: Patches;
  validation: Patches;
  /** Patches side by side, without the overlap that training uses. `train` includes those for selection. */
  counts: { train: number; validation: number };
  /** Description of the split for the model card. */
  split: string;
  holdOut: AppliedHoldOut;
  /** Indices of the images of the dates of the training, and of the validation. */
  trainingImages: number[];
  validationImages: number[];
  /** Days of the training and the validation on which the cell has the same image. */
  copies: DayPair[];
  /** Present if the cell has several dates, so that models may read its history. The spec of the patches is `withHistory`. */
  history?: CellHistory;
}

/** Patches by date, for choices between models and for the questions that a model answers in use. */
export interface CellHistory {
  use: HistoryUse;
  /** Dates are left out in groups, passes as a whole; the first day of each group. */
  days: string[];
  /** Returns patches with these groups left out, by number. The histories of the patches do not have their dates either. */
  leaveOut(groups: readonly number[]): LeftOutDates;
  /** Patches by date: other ground on the dates of the training, the training ground on other dates, and both other. */
  otherGround: DatedPatches[];
  otherDates: DatedPatches[];
  both: DatedPatches[];
}

export interface LeftOutDates {
  /** Patches of the training ground on the other dates. */
  train: Patches;
  /** Patches of all ground but the validation ground, on the dates of each of the groups. */
  scored: Patches[][];
}

export interface DatedPatches {
  /** As `timesOf`. */
  datetime: string;
  patches: Patches;
}

/** The split of a cell, as its model card records it. */
export interface AppliedHoldOut {
  side: Side;
  /** Pixels between the validation ground and the training ground of this and every other cell. */
  gap: number;
  /** First held-out date, RFC 3339. Absent if training and validation use the same dates, and with `days`. */
  from?: string;
  /** The days that the job named to be held out. */
  days?: string[];
  /** Number of held-out dates of this cell. Absent if training and validation use the same dates. */
  dates?: number;
  /** The validation ground, in pixels of the cell. */
  window: Window;
}

/** Returns the set with only cloudy pixels counted for cloud removal, because these are the pixels that the model fills. */
export function filledOnly(set: Patches): Patches {
  const { targetMask, cloud } = set;
  return targetMask && cloud ? { ...set, targetMask: targetMask.map((is, at) => is * cloud[at]) } : set;
}

/** Returns at most `limit` patches of a set, spread evenly over it. */
export function subsamplePatches(set: Patches, limit: number): Patches {
  return selectPatches(set, strideSample([...Array(set.count).keys()], limit));
}

/** Returns the chosen patches of a set, in this order. */
export function selectPatches(set: Patches, chosen: number[]): Patches {
  const pick = (values: Float32Array) => {
    const length = values.length / set.count;
    const picked = new Float32Array(chosen.length * length);
    chosen.forEach((n, i) => {
      picked.set(values.subarray(n * length, (n + 1) * length), i * length);
    });
    return picked;
  };
  const selected = { ...set, count: chosen.length };
  for (const member of PATCH_ARRAYS) if (set[member]) selected[member] = pick(set[member]);
  return selected;
}

type PatchResult = { dataset: TrainValidationPatches } | { skipped: string };

interface Split {
  ground: SpatialSplit;
  trainDates: LabelledImage[];
  validationDates: LabelledImage[];
  /** Undefined if both sides have the same dates. */
  heldOut?: HeldOutDates;
  /** Dates that neither side has, because other cells hold them out. */
  excluded?: HeldOutDates;
}

export interface HistoryOptions {
  /** Default: `none`. */
  use?: HistoryUse;
  /** All days of the training, in the order in which they are divided into groups. Default: the days of the cell. */
  days?: readonly string[];
  /**
   * True if one model is trained on several cells: a cell without a history has empty planes, and no cell trains on a date that others hold
   * out.
   */
  isShared?: boolean;
}

/**
 * Cuts the patches of one cell, or returns the reason why there are too few. All images must have the same size. If the cell has several
 * dates and `use` is not `none`, the patches have the history of the cell.
 */
export function makePatches(
  plain: ModelSpec,
  images: LabelledImage[],
  heldOut?: HeldOutDates,
  { use = 'none', days, isShared = false }: HistoryOptions = {},
): PatchResult {
  const division = usableDivision(plain, images, heldOut, isShared);
  if ('skipped' in division) return division;
  const { spec: sized, split, counts } = division;
  const { ground, trainDates, validationDates } = split;
  const readsHistory = use !== 'none' && (isShared || hasUsableHistory(trainDates));
  const spec = readsHistory ? withHistory(sized) : sized;
  const { patchSize } = spec;
  const history = readsHistory ? { images: trainDates, use } : undefined;
  const trainHistory = history && { ...history, use: 'all' as const };
  // Training patches overlap by half.
  const trainOrigins = usableOrigins(trainDates, ground.train, patchSize, patchSize / 2);
  const selectionOrigins = usableOrigins(trainDates, ground.selection, patchSize, patchSize);
  // If the selection ground has no usable patch, the last training patches are used for selection.
  if (selectionOrigins.length === 0)
    selectionOrigins.push(...trainOrigins.splice(Math.ceil(trainOrigins.length * (1 - SELECTION_FRACTION))));
  const train = withKnownHistory(spec, collectPatches(spec, images, trainOrigins, trainHistory));
  const selection = withKnownHistory(
    spec,
    filledOnly(collectPatches(spec, images, selectionOrigins, trainHistory)),
  );
  const validation = filledOnly(
    collectPatches(
      spec,
      images,
      usableOrigins(validationDates, ground.validation, patchSize, patchSize),
      history,
    ),
  );
  return {
    dataset: {
      train,
      validation,
      counts,
      ...(selection.count > 0 && { selection }),
      split: describe(split, spec),
      holdOut: {
        side: ground.side,
        gap: receptiveField(spec),
        ...heldOutOf(split),
        ...(split.heldOut && { dates: validationDates.length }),
        window: ground.validation,
      },
      trainingImages: trainDates.map((image) => images.indexOf(image)),
      validationImages: validationDates.map((image) => images.indexOf(image)),
      copies: copiesAmong([...new Set([...trainDates, ...validationDates])]),
      ...(history && { history: cellHistory(spec, split, history, days) }),
    },
  };
}

const copiesAmong = (images: LabelledImage[]): DayPair[] =>
  images.flatMap((image, i) => copiesOf(image, images.slice(i + 1)));

function heldOutOf({ excluded, heldOut = excluded }: Split): Pick<AppliedHoldOut, 'from' | 'days'> {
  if (heldOut === undefined) return {};
  return 'from' in heldOut ? { from: new Date(heldOut.from).toISOString() } : { days: [...heldOut.days] };
}

/** Images from which histories are made. */
export interface HistorySource {
  images: LabelledImage[];
  use: HistoryUse;
}

/** Largest number of groups of dates: more cost time and choose hardly better. */
const MAX_FOLDS = 8;

function cellHistory(
  spec: ModelSpec,
  { ground, trainDates, validationDates, heldOut }: Split,
  history: HistorySource,
  days = [...new Set(trainDates.map(daysOf))].sort() as readonly string[],
): CellHistory {
  const { patchSize } = spec;
  const { use } = history;
  const on = (images: LabelledImage[], areas: Window[], source = history): DatedPatches[] =>
    images.flatMap((image) => {
      const origins = areas.flatMap((area) => usableOrigins([image], area, patchSize, patchSize));
      if (origins.length === 0) return [];
      const datetime = timesOf(image);
      return { datetime, patches: filledOnly(collectPatches(spec, [image], origins, source)) };
    });
  const passOf = passesOf(days);
  const passes = [...new Set(passOf.values())];
  const count = Math.min(MAX_FOLDS, passes.length);
  const groupOf = (image: LabelledImage) => passes.indexOf(passOf.get(daysOf(image))!) % count;
  return {
    use,
    days: passes.slice(0, count),
    leaveOut: (groups) => {
      const left = trainDates.filter((image) => groups.includes(groupOf(image)));
      const images = withoutPasses(trainDates, left);
      const source = { images, use: 'all' } as const;
      const origins = usableOrigins(images, ground.train, patchSize, patchSize / 2);
      const areas = [ground.train, ground.selection];
      return {
        train: withKnownHistory(spec, collectPatches(spec, trainDates, origins, source)),
        scored: groups.map((group) => {
          const dated = on(
            left.filter((image) => groupOf(image) === group),
            areas,
            source,
          );
          return dated.flatMap(({ patches }) => {
            const set = withKnownHistory(spec, patches);
            return set.count > 0 ? [set] : [];
          });
        }),
      };
    },
    otherGround: on(heldOut === undefined ? [] : trainDates, [ground.validation]),
    otherDates: on(heldOut === undefined ? [] : validationDates, [ground.train]),
    both: on(heldOut === undefined ? [] : validationDates, [ground.validation]),
  };
}

/** Returns the images that are not of the pass of one of these. */
const withoutPasses = (images: LabelledImage[], left: readonly LabelledImage[]): LabelledImage[] =>
  images.filter((image) => !left.some((other) => isSamePass(other, image)));

/** Returns the patches that have a history: a model learns nothing from the others. Sets of models without history are unchanged. */
function withKnownHistory(spec: ModelSpec, set: Patches): Patches {
  if (!spec.history) return set;
  const has = hasHistoryAt(spec, set);
  const chosen = Array.from({ length: set.count }, (_, n) => n).filter(has);
  // A cell without a history keeps its patches, on which a model shared with others has its fallback.
  return chosen.length === set.count || chosen.length === 0 ? set : selectPatches(set, chosen);
}

/** Returns a function that tells if some pixel of a patch has a history. */
export function hasHistoryAt(spec: ModelSpec, { inputs, inputBands, size }: Patches): (n: number) => boolean {
  const pixels = size * size;
  const plane = spec.inputs.length + historyLayout(spec).has;
  return (n) => {
    for (let i = n * pixels; i < (n + 1) * pixels; i++) if (inputs[i * inputBands + plane] === 1) return true;
    return false;
  };
}

/** Returns patches as on ground whose history nobody knows. */
export function withoutHistory(spec: ModelSpec, set: Patches): Patches {
  const bands = spec.inputs.length;
  return { ...set, inputs: set.inputs.map((value, i) => (i % set.inputBands < bands ? value : 0)) };
}

/** Returns the patches of a cell for a model that reads only the bands. */
export function withoutHistoryPlanes(
  { inputs: { length: bands } }: ModelSpec,
  dataset: TrainValidationPatches,
): TrainValidationPatches {
  const { history, ...plain } = dataset;
  if (!history) return dataset;
  const bandsOf = (set: Patches): Patches => ({
    ...set,
    inputs: set.inputs.filter((_, i) => i % set.inputBands < bands),
    inputBands: bands,
  });
  return {
    ...plain,
    train: bandsOf(plain.train),
    validation: bandsOf(plain.validation),
    ...(plain.selection && { selection: bandsOf(plain.selection) }),
  };
}

/** Returns the reason why there are too few patches, from the masks of the images only; undefined if there are enough. */
export function tooFewPatches(
  spec: ModelSpec,
  images: LabelledImage[],
  heldOut?: HeldOutDates,
  isShared = false,
): string | undefined {
  const division = usableDivision(spec, images, heldOut, isShared);
  return 'skipped' in division ? division.skipped : undefined;
}

interface Division {
  /** With the size of the patches. */
  spec: ModelSpec;
  split: Split;
  counts: TrainValidationPatches['counts'];
}

/**
 * Returns the first split with enough patches on both sides, of the largest patches that allow one. Splits with separate dates come first,
 * also with smaller patches.
 */
function usableDivision(
  model: ModelSpec,
  images: LabelledImage[],
  heldOut: HeldOutDates | undefined,
  isShared: boolean,
): Division | { skipped: string } {
  const { minPatches, minValidationPatches } = model;
  const sizes = withPatchSizes(model);
  const total = ({ counts: { train, validation } }: Division) => train + validation;
  let nearest: Division | undefined;
  for (const isSeparate of [true, false])
    for (const spec of sizes) {
      const divisions = candidateSplits(images, heldOut, spec, isShared)
        .filter((split) => (split.heldOut !== undefined) === isSeparate)
        .map((split) => ({ spec, split, counts: countPatches(split, spec.patchSize) }));
      const usable = divisions.find(
        ({ counts: { train, validation } }) =>
          train + validation >= minPatches && train >= minPatches / 2 && validation >= minValidationPatches,
      );
      if (usable) return usable;
      // The reason is that of the split of the smallest patches that is nearest to having enough.
      [nearest] = divisions.toSorted((a, b) => total(b) - total(a));
    }
  if (isShared && heldOut && images.length > 0 && images.every((image) => isNearHeldOut(heldOut, image)))
    return { skipped: 'all of its dates are held out for validation, or within three days of such dates' };
  return { skipped: reasonToSkip(sizes.at(-1)!, images, nearest?.counts) };
}

/**
 * Returns all sides with separate dates, if there are held-out dates and others; then all sides with the same dates. `isShared`: these are
 * then not held out either, because other cells hold them out from the same model.
 */
function candidateSplits(
  images: LabelledImage[],
  heldOut: HeldOutDates | undefined,
  spec: ModelSpec,
  isShared: boolean,
): Split[] {
  const [first] = images;
  if (!first) return [];
  // The passes of a pair of dates are close on purpose.
  const hasPairs = spec.target.kind === 'clear';
  const grounds = spatialSplits(first, coveredWindow(images), spec.patchSize, receptiveField(spec));
  const alike = (dates: LabelledImage[]) =>
    dates.length > 0 ? grounds.map((ground) => ({ ground, trainDates: dates, validationDates: dates })) : [];
  if (heldOut === undefined) return alike(images);
  const isLeft = (image: LabelledImage) =>
    hasPairs && !isComposite(image) ? isHeldOut(heldOut, image.time) : isNearHeldOut(heldOut, image);
  const validationDates = images.filter(({ time }) => isHeldOut(heldOut, time));
  const trainDates = images.filter((image) => !isLeft(image));
  const same = isShared ? alike(trainDates).map((split) => ({ ...split, excluded: heldOut })) : alike(images);
  if (trainDates.length === 0 || validationDates.length === 0) return same;
  return [...grounds.map((ground) => ({ ground, trainDates, validationDates, heldOut })), ...same];
}

/** Returns the smallest window that contains all pixels with data on any date. */
function coveredWindow(images: LabelledImage[]): Window {
  const { width, height } = images[0];
  let left = width;
  let top = height;
  let right = 0;
  let bottom = 0;
  for (const { mask } of images)
    for (let at = 0; at < mask.length; at++) {
      if (mask[at] === Mask.nodata) continue;
      const column = at % width;
      const row = Math.floor(at / width);
      left = Math.min(left, column);
      right = Math.max(right, column + 1);
      top = Math.min(top, row);
      bottom = Math.max(bottom, row + 1);
    }
  return { column: left, row: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
}

function countPatches(split: Split, patchSize: number): TrainValidationPatches['counts'] {
  const { ground, trainDates, validationDates } = split;
  const count = (area: Window) => usableOrigins(trainDates, area, patchSize, patchSize).length;
  const train = count(ground.train);
  return {
    // Selection patches are useless without training patches.
    train: train === 0 ? 0 : train + count(ground.selection),
    validation: usableOrigins(validationDates, ground.validation, patchSize, patchSize).length,
  };
}

interface Origin {
  image: LabelledImage;
  /** Index of the north-western pixel of the patch. */
  from: number;
}

/** Returns the usable patches; for cloud removal only those with cloud, because the others contribute nothing. */
export function usableOrigins(images: LabelledImage[], area: Window, size: number, stride: number): Origin[] {
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
  const { width, inputMask, targetMask, cloud } = image;
  let readable = 0;
  let counted = 0;
  for (let y = 0; y < size; y++) {
    for (let at = from + y * width, end = at + size; at < end; at++) {
      readable += inputMask[at];
      if (targetMask[at] && cloud?.[at] !== 0) counted++;
    }
  }
  return readable >= MIN_READABLE_FRACTION * size * size && counted > 0;
}

export function collectPatches(
  spec: ModelSpec,
  images: LabelledImage[],
  usable: Origin[],
  history?: HistorySource,
): Patches {
  const size = spec.patchSize;
  const origins = strideSample(usable, spec.maxPatches);
  const count = origins.length;
  const pixels = size * size;
  const planes = (of: (image: LabelledImage) => ArrayLike<number>[], gapsOf: PatchGaps) => {
    const bands = of(images[0]).length;
    const all = new Float32Array(count * pixels * bands);
    for (const [n, origin] of origins.entries())
      for (const [b, plane] of of(origin.image).entries()) {
        const { mask, value } = gapsOf(plane, origin, size);
        let to = n * pixels * bands + b;
        for (let row = 0; row < size; row++) {
          const first = origin.from + row * origin.image.width;
          for (let at = first; at < first + size; at++, to += bands)
            all[to] = !mask || mask[at] ? plane[at] : value;
        }
      }
    return all;
  };
  const range = targetRange(spec.target);
  const shape = {
    ...{ count, size, targetBands: images[0].targets.length },
    inputBands: history ? inputPlanes(spec) : images[0].inputs.length,
    ...(range && { range }),
  };
  const bands = planes((image) => image.inputs, filledGaps);
  const inputs = history ? withHistoryPlanes(spec, bands, origins, history) : bands;
  if (spec.target.kind === 'mean') {
    const mean = (origin: Origin) => meanOf(origin.image.targets[0], origin.image.targetMask, origin, size);
    return { ...shape, inputs, targets: Float32Array.from(origins, mean) };
  }
  return {
    ...shape,
    inputs,
    targets: planes((image) => image.targets, maskedGaps),
    targetMask: planes((image) => [image.targetMask], noGaps),
    ...(images[0].cloud && { cloud: planes((image) => [image.cloud!], noGaps) }),
    ...(images[0].cloudy && { cloudy: planes((image) => image.cloudy!, filledGaps) }),
  };
}

/** Returns the inputs of patches with the planes of their histories after those of `bands`. */
function withHistoryPlanes(
  spec: ModelSpec,
  bands: Float32Array,
  origins: Origin[],
  { images, use }: HistorySource,
): Float32Array {
  const { patchSize: size } = spec;
  const own = spec.inputs.length;
  const all = inputPlanes(spec);
  const pixels = size * size;
  const inputs = new Float32Array(origins.length * pixels * all);
  for (const [n, { image, from }] of origins.entries()) {
    const part = {
      column: from % image.width,
      row: Math.floor(from / image.width),
      width: size,
      height: size,
    };
    const planes = historyPlanes(spec, image, images, use, part);
    fillHistory(planes, spec.target.kind === 'mean');
    for (let i = 0; i < pixels; i++) {
      const to = (n * pixels + i) * all;
      for (let b = 0; b < own; b++) inputs[to + b] = bands[(n * pixels + i) * own + b]!;
      for (let p = 0; p < planes.length; p++) inputs[to + own + p] = planes[p]![i]!;
    }
  }
  return inputs;
}

/** Returns at most `limit` of the items, spread evenly over dates and ground. */
function strideSample<T>(items: T[], limit: number): T[] {
  if (items.length <= limit) return items;
  return Array.from({ length: limit }, (_, i) => items[Math.floor((i * items.length) / limit)]);
}

function pixelOf({ image, from }: Origin, size: number, i: number): number {
  return from + Math.floor(i / size) * image.width + (i % size);
}

/** Returns the mean of the pixels of a patch at which `mask` is 1. */
function meanOf(plane: ArrayLike<number>, mask: Uint8Array, origin: Origin, size: number): number {
  let sum = 0;
  let count = 0;
  for (let i = 0; i < size * size; i++) {
    const at = pixelOf(origin, size, i);
    if (!mask[at]) continue;
    sum += plane[at];
    count++;
  }
  return sum / count;
}

/** Returns the pixels that have no value of their own in a patch, those where `mask` is 0, and the value that they take. */
type PatchGaps = (
  plane: ArrayLike<number>,
  origin: Origin,
  size: number,
) => { mask?: Uint8Array; value: number };

const noGaps: PatchGaps = () => ({ value: NaN });

/** 0 for pixels that do not count. */
const maskedGaps: PatchGaps = (_, { image: { targetMask } }) => ({ mask: targetMask, value: 0 });

/** The mean of the readable pixels for the others. */
const filledGaps: PatchGaps = (plane, origin, size) => {
  const mask = origin.image.inputMask;
  return { mask, value: meanOf(plane, mask, origin, size) };
};

function describe({ ground, trainDates, validationDates, heldOut }: Split, spec: ModelSpec): string {
  const { patchSize } = spec;
  const where = `validation: ${ground.side} side in patches of ${patchSize}x${patchSize} px, ${receptiveField(spec)} px away from the training ground of every place`;
  if (heldOut === undefined) return `${where}; same dates`;
  const dates = plural(validationDates.length, 'date');
  return 'from' in heldOut
    ? `${where}, ${dates} from ${dayOf(heldOut.from)}; training: ${plural(trainDates.length, 'earlier date')}`
    : `${where}, ${dates} that the job names; training: ${plural(trainDates.length, 'other date')}`;
}

function reasonToSkip(
  spec: ModelSpec,
  images: LabelledImage[],
  counts: TrainValidationPatches['counts'] | undefined,
): string {
  const { patchSize, minPatches, minValidationPatches, target } = spec;
  const [first] = images;
  if (first === undefined)
    return target.kind === 'clear' ? 'no cloudy date with a clear one near it' : 'no dates with all bands';
  const size = `${patchSize}x${patchSize} px`;
  if (counts === undefined) {
    const { width, height } = coveredWindow(images);
    return `${width}x${height} px with data are too few for training and validation patches of ${size} with a gap of ${receptiveField(spec)} px`;
  }
  const codes = maskHistogram(Buffer.concat(images.map(({ mask }) => mask)));
  const cloud = cloudCoverPercent(codes);
  const seen = `(coverage ${Math.round(coveragePercent(codes))} %, cloud ${cloud === null ? 'not assessed' : `${Math.round(cloud)} %`})`;
  const { train, validation } = counts;
  const cloudy = first.cloud ? ' with cloud' : '';
  const lacking = (count: number, which: string, least: number) =>
    `${count} usable ${which}patches${cloudy} of ${size}, at least ${least} are needed ${seen}`;
  if (train + validation < minPatches) return lacking(train + validation, '', minPatches);
  return train < minPatches / 2
    ? lacking(train, 'training ', minPatches / 2)
    : lacking(validation, 'validation ', minValidationPatches);
}

const CONCATENATED_ARRAYS = ['inputs', 'targets', 'targetMask', 'cloud'] as const;

/**
 * Concatenates at least one set of patches of one model, such as those of several cells. Larger patches are divided into those of the
 * smallest size. The sets become views of the result, so that the data are in memory once.
 */
export function concatPatches(sets: Patches[]): Patches {
  const smallest = Math.min(...sets.map(({ size }) => size));
  for (const set of sets) if (set.size > smallest) Object.assign(set, dividePatches(set, smallest));
  const joined = { ...sets[0], count: sets.reduce((sum, { count }) => sum + count, 0) };
  for (const member of CONCATENATED_ARRAYS) {
    if (sets[0][member] === undefined) continue;
    const all = new Float32Array(sets.reduce((sum, set) => sum + set[member]!.length, 0));
    let from = 0;
    for (const set of sets) {
      const part = all.subarray(from, from + set[member]!.length);
      part.set(set[member]!);
      set[member] = part;
      from += part.length;
    }
    joined[member] = all;
  }
  return joined;
}

/** Divides each patch of a map into patches of a size that divides its side. Parts without a value that counts are left out. */
function dividePatches(set: Patches, size: number): Patches {
  const { size: side, count, targetMask } = set;
  const parts = side / size;
  const divided = { ...set, count: count * parts ** 2, size };
  for (const member of PATCH_ARRAYS) {
    const values = set[member];
    if (!values) continue;
    const bands = values.length / (count * side ** 2);
    const out = new Float32Array(values.length);
    let to = 0;
    for (let patch = 0; patch < divided.count; patch++) {
      const part = patch % parts ** 2;
      const corner =
        (patch - part) * size ** 2 + Math.floor(part / parts) * size * side + (part % parts) * size;
      for (let row = 0; row < size; row++, to += size * bands) {
        const from = (corner + row * side) * bands;
        out.set(values.subarray(from, from + size * bands), to);
      }
    }
    divided[member] = out;
  }
  if (!targetMask) return divided;
  const counts = (patch: number) =>
    divided.targetMask!.subarray(patch * size ** 2, (patch + 1) * size ** 2).includes(1);
  return selectPatches(divided, [...Array(divided.count).keys()].filter(counts));
}
