/** What one date, or a pair of dates, shows of a place: the planes that go into a model and those that should come out. */
import {
  type AcquisitionPixels,
  clearMask,
  cloudInputs,
  type DatePair,
  inputMaskOf,
  isCloudy,
} from '../data/index.js';
import { type ModelSpec, requiredBands, type TargetSpec } from '../models/index.js';

/** All planes have width x height values. */
export interface LabelledImage {
  /** Milliseconds since 1970; for a pair, the later of its two dates. */
  time: number;
  width: number;
  height: number;
  /**
   * Reflectances, one plane an input band; for a pair the planes of `cloudInputs`. Not to be read where `readable` is 0.
   */
  inputs: Float32Array[];
  /** One plane an output. Not to be read where `counts` is 0. */
  targets: Float32Array[];
  /** 1 where the inputs may be shown to the model; what it sees elsewhere is made up. */
  inputMask: Uint8Array;
  /** 1 where the target is known. It is known only where `readable` is 1. */
  targetMask: Uint8Array;
  /** For a pair: the bands of the cloudy date as they are. */
  cloudy?: Float32Array[];
  /** Where there are pairs: 1 where the cloud that is to be removed, or its shadow, is. */
  cloud?: Uint8Array;
  mask: Uint8Array;
}

/** Below this sum of two reflectances, their normalised difference has no meaning. */
const MIN_BAND_SUM = 1e-6;

/** Of dates with all bands that the model reads: one of each, or one of each pair for a model that removes cloud. */
export function labelImages(
  spec: ModelSpec,
  dates: AcquisitionPixels[],
  pairs: DatePair[] = [],
): LabelledImage[] {
  const { target } = spec;
  return target.kind === 'clear'
    ? pairs.map(({ cloudy, clear, prior = [] }) =>
        ofPair(
          spec,
          dates[cloudy],
          dates[clear],
          prior.map((date) => dates[date]),
        ),
      )
    : dates.map((date) => ofDate(spec, target, date));
}

function ofDate(
  spec: ModelSpec,
  { index }: TargetSpec & { kind: 'mean' | 'map' },
  date: AcquisitionPixels,
): LabelledImage {
  const { time, width, height, mask } = date;
  const inputMask = clearMask(date, requiredBands(spec));
  const [a, b] = index.map((name) => date.bands[name]!);
  const target = new Float32Array(width * height);
  const targetMask = inputMask.map((one, at) => {
    if (!one || !(a[at] + b[at] > MIN_BAND_SUM)) return 0;
    target[at] = Math.min(1, Math.max(-1, (a[at] - b[at]) / (a[at] + b[at])));
    return 1;
  });
  const inputs = spec.inputs.map((name) => date.bands[name]!);
  return { time, width, height, inputs, targets: [target], inputMask, targetMask, mask };
}

function ofPair(
  spec: ModelSpec,
  cloudy: AcquisitionPixels,
  clear: AcquisitionPixels,
  others: AcquisitionPixels[],
): LabelledImage {
  const { inputs } = spec;
  const { width, height, mask } = cloudy;
  const time = Math.max(cloudy.time, clear.time);
  const inputMask = inputMaskOf(spec, cloudy);
  const known = clearMask(clear, inputs);
  const targetMask = inputMask.map((one, at) => one & known[at]);
  const [from, to] = [cloudy, clear].map(({ bands }) => inputs.map((name) => bands[name]!));
  const cloud = mask.map((code) => (isCloudy(code) ? 1 : 0));
  return {
    ...{ time, width, height, targets: to, inputMask, targetMask, cloudy: from, cloud, mask },
    inputs: cloudInputs(cloudy, others, inputs, cloud),
  };
}
