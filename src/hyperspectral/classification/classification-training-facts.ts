/** Facts about the training of a classifier, and the importance of the bands for its classes. */
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { VALIDATION } from '../class-labels/index.js';
import { allGatherChecked } from '../jobs/index.js';
import type { CamSums } from '../spectral-cnn/index.js';
import { BYTES_PER_VALUE, PRECISIONS, type Precision } from '../training-samples/index.js';
import type { FittedClassifier, Fitting } from './fit-classifier.js';

/** Plain JSON. */
export interface TrainingFacts {
  precision: Precision;
  /** Labelled pixels that trained it. Pixels are left out if memory does not suffice, or if their patches overlap squares of other sets. */
  pixels: number;
  /** Number of weights. */
  parameters: number;
  /** Bytes of the standardised spectra in memory. */
  spectraBytes: number;
  /** Bytes of the gradients that a node sends. */
  gradientBytes: number;
  /** Evaluations of the loss by L-BFGS; absent if an engine trained it. */
  evaluations?: number;
  /** Name and version of the engine; absent without an engine, like the following members. */
  engine?: string;
  epochs?: number;
  /** Steps of Adam. */
  steps?: number;
  /** Steps that were skipped because a gradient exceeded float16. */
  overflows?: number;
}

export const TRAINING = objectOf(
  {
    precision: { enum: PRECISIONS },
    pixels: COUNT,
    parameters: COUNT,
    spectraBytes: COUNT,
    gradientBytes: COUNT,
  },
  { evaluations: COUNT, engine: TEXT, epochs: COUNT, steps: COUNT, overflows: COUNT },
);

/** Importance of each band (Grad-CAM), 0 to 1, for each class; null if no pixel of the class is classified correctly. Plain JSON. */
export type BandWeights = (number[] | null)[];

export const BAND_WEIGHTS = { type: 'array', items: { anyOf: [listOf(NUMBER), { type: 'null' }] } };

const checkCams = messageCheck(objectOf({ pixels: listOf(COUNT), sums: listOf(NUMBER) }));

/** Returns undefined for discriminants, which are computed from sums without training steps. */
export function trainingFacts({ nets, data }: Fitting, fitted: FittedClassifier): TrainingFacts | undefined {
  if (fitted.kind === 'layers') {
    const { layers, descent } = fitted;
    if (!descent) return undefined;
    const pixels = data.pixels.reduce((sum, count) => sum + count, 0);
    return {
      precision: data.precision,
      pixels,
      parameters: layers.reduce((sum, { weights, bias }) => sum + weights.length + bias.length, 0),
      spectraBytes: pixels * data.standard.centre.length * BYTES_PER_VALUE[data.precision],
      gradientBytes: descent.bytes,
      evaluations: descent.evaluations,
    };
  }
  const { session, epochs } = nets!;
  const { weights, steps, overflows, bytes, pixels } = fitted;
  return {
    engine: `${session.engine.name} ${session.engine.version}`,
    precision: session.precision,
    pixels,
    epochs,
    parameters: weights.length,
    steps,
    overflows,
    spectraBytes: session.bytes,
    gradientBytes: bytes,
  };
}

/**
 * Computed on the validation pixels, which did not train the classifier. Returns undefined if its convolutions do not run along the bands.
 */
export async function bandWeights(
  { nets, analysed: { job } }: Fitting,
  validating: FittedClassifier,
): Promise<BandWeights | undefined> {
  if (validating.kind !== 'net' || nets!.session.shape.name === 'cnn2d') return undefined;
  const { session } = nets!;
  const { classes, bands } = session.shape;
  const own = await session.cams(validating.weights, VALIDATION);
  const message = { pixels: own.pixels, sums: Array.from(own.sums) };
  const total: CamSums = {
    pixels: new Array<number>(classes).fill(0),
    sums: new Float64Array(classes * bands),
  };
  for (const { pixels, sums } of await allGatherChecked(job, message, checkCams)) {
    if (pixels.length !== classes || sums.length !== classes * bands)
      throw new Error('another node has sent sums of another size');
    for (const [c, count] of pixels.entries()) total.pixels[c] += count;
    for (const [at, sum] of sums.entries()) total.sums[at] += sum;
  }
  return total.pixels.map((count, c) => {
    const own = total.sums.slice(c * bands, (c + 1) * bands);
    const most = own.reduce((most, value) => Math.max(most, value), 0);
    return count === 0 || most === 0 ? null : Array.from(own, (value) => value / most);
  });
}
