/** Labelled images of a cell, each from one date or a pair of dates: input planes, target planes and masks. */
import { type AcquisitionPixels, clearMask, type DatePair, inputMaskOf, isCloudy } from './acquisitions.js';
import { type Dated, type DayPair, daysOf, endOf, isSamePass } from './dates.js';
import { type ModelSpec, requiredBands, type TargetSpec } from './models/spec.js';
import { cloudInputs } from './prior.js';

/** All planes have width x height values. The time and the end of a pair are the later ones of its two dates. */
export interface LabelledImage extends Dated {
  width: number;
  height: number;
  /** Reflectances, one plane for each input band; for a pair the planes of `cloudInputs`. Undefined where `inputMask` is 0. */
  inputs: Float32Array[];
  /** One plane for each output. Undefined where `targetMask` is 0. */
  targets: Float32Array[];
  /** The bands from which a history is made, `requiredBands`. Absent for a pair. */
  measured?: Float32Array[];
  /** 1 where the model may read the inputs. Other pixels are filled with the mean of a patch. */
  inputMask: Uint8Array;
  /** 1 where the target is known, which is only where `inputMask` is 1. */
  targetMask: Uint8Array;
  /** For a pair: the bands of the cloudy date, unchanged. */
  cloudy?: Float32Array[];
  /** For a pair: 1 where there is cloud to be removed, or its shadow. */
  cloud?: Uint8Array;
  mask: Uint8Array;
}

/** Part of the spread of a band within which two images are copies: what another encoding of the same image changes. */
const COPY_DIFFERENCE = 0.1;
/** Pixels that are compared at most, and measured on both dates at least. */
const COMPARED_PIXELS = { most: 4096, least: 100 };

/** Returns the days of other passes on which images of a place are as this one, as if one scene had been ingested with two dates. */
export function copiesOf(image: LabelledImage, others: readonly LabelledImage[]): DayPair[] {
  const copies = others.filter((other) => !isSamePass(other, image) && areCopies(image, other));
  return copies.map((copy) => [daysOf(image), daysOf(copy)]);
}

/** True if the bands of two images differ little where both are measured. Bands of one value say nothing. */
function areCopies(a: LabelledImage, b: LabelledImage): boolean {
  const bandsOf = ({ measured, targets }: LabelledImage) => measured ?? targets;
  const stride = Math.max(1, Math.floor(a.targetMask.length / COMPARED_PIXELS.most));
  return bandsOf(a).every((band, number) => {
    const other = bandsOf(b)[number]!;
    let [count, sum, squares, difference] = [0, 0, 0, 0];
    for (let at = 0; at < band.length; at += stride) {
      if (!a.targetMask[at] || !b.targetMask[at]) continue;
      count++;
      sum += band[at]!;
      squares += band[at]! ** 2;
      difference += (band[at]! - other[at]!) ** 2;
    }
    const variation = squares - sum ** 2 / count;
    return count >= COMPARED_PIXELS.least && variation > 0 && difference < COPY_DIFFERENCE ** 2 * variation;
  });
}

/** Minimum sum of two reflectances: below it, their normalised difference is meaningless. */
const MIN_BAND_SUM = 1e-6;

/**
 * Labels the dates of a cell, which must have all bands that the model reads: one image for each date, or for cloud removal one for each
 * pair.
 */
export function labelImages(
  spec: ModelSpec,
  dates: AcquisitionPixels[],
  pairs: DatePair[] = [],
): LabelledImage[] {
  const { target } = spec;
  return target.kind === 'clear'
    ? pairs.map(({ cloudy, clear, prior = [] }) =>
        labelPair(
          spec,
          dates[cloudy],
          dates[clear],
          prior.map((date) => dates[date]),
        ),
      )
    : dates.map((date) => labelDate(spec, target, date));
}

function labelDate(
  spec: ModelSpec,
  { index }: TargetSpec & { kind: 'mean' | 'map' },
  date: AcquisitionPixels,
): LabelledImage {
  const { time, end, width, height, mask } = date;
  const inputMask = clearMask(date, requiredBands(spec));
  const [a, b] = index.map((name) => date.bands[name]!);
  const target = new Float32Array(width * height);
  const targetMask = inputMask.map((one, at) => {
    if (!one || !(a[at] + b[at] > MIN_BAND_SUM)) return 0;
    target[at] = Math.min(1, Math.max(-1, (a[at] - b[at]) / (a[at] + b[at])));
    return 1;
  });
  const inputs = spec.inputs.map((name) => date.bands[name]!);
  const measured = requiredBands(spec).map((name) => date.bands[name]!);
  return { time, end, width, height, inputs, targets: [target], measured, inputMask, targetMask, mask };
}

function labelPair(
  spec: ModelSpec,
  cloudy: AcquisitionPixels,
  clear: AcquisitionPixels,
  others: AcquisitionPixels[],
): LabelledImage {
  const { inputs } = spec;
  const { width, height, mask } = cloudy;
  const time = Math.max(cloudy.time, clear.time);
  const end = Math.max(endOf(cloudy), endOf(clear));
  const inputMask = inputMaskOf(spec, cloudy);
  const known = clearMask(clear, inputs);
  const targetMask = inputMask.map((one, at) => one & known[at]);
  const bandsOf = ({ bands }: AcquisitionPixels) => inputs.map((name) => bands[name]!);
  const cloud = mask.map((code) => (isCloudy(code) ? 1 : 0));
  return {
    time,
    end,
    width,
    height,
    inputs: cloudInputs(cloudy, others, inputs, cloud),
    targets: bandsOf(clear),
    inputMask,
    targetMask,
    cloudy: bandsOf(cloudy),
    cloud,
    mask,
  };
}
