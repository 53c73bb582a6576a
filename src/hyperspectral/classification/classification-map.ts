/** Fits classifiers to the labelled pixels, and describes the one that is used for the map. */
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { TRAIN, TUNE, VALIDATION } from '../class-labels/index.js';
import { layersMethod, type PixelMethod, parseNetwork, saveClassifier } from '../pixel-methods/index.js';
import { type NetMethod, netMethod } from '../spectral-cnn/index.js';
import type { FittedAnalysis } from '../spectral-maps/index.js';
import type { AccuracyScores } from './classification-accuracy.js';
import { LABELLED_TILES, type LabelledTileFacts } from './classification-dataset.js';
import type { ClassifyInputs } from './classification-inputs.js';
import {
  type Calibration,
  type ClassifierCandidate,
  selectCandidate,
  trainChosen,
  tuneCandidates,
  validated,
} from './classification-model-selection.js';
import {
  BAND_WEIGHTS,
  type BandWeights,
  bandWeights,
  TRAINING,
  type TrainingFacts,
  trainingFacts,
} from './classification-training-facts.js';
import { CLASSIFIERS, type FittedClassifier, type Fitting } from './fit-classifier.js';
import type { LabelledFitting } from './load-classification-dataset.js';

/** A candidate with its scores on the validation pixels. */
export interface ComparedClassifier extends ClassifierCandidate {
  oa: number;
  aa: number;
  kappa: number;
}

export interface ClassifyFit {
  classes: { code: number; name: string; train: number; validation: number; mean: number[] }[];
  chosen: ClassifierCandidate;
  compared: ComparedClassifier[];
  scores: AccuracyScores;
  calibration: Calibration;
  /** Scores of the random split, if that was requested. */
  random?: AccuracyScores;
  /** Tiles with labelled pixels. */
  tiles: LabelledTileFacts[];
  sizes: number[];
  /** Rows of the tiles. */
  rows: number;
  /** Files of the model, in base64. */
  files: Record<string, string>;
  /** Present if an engine trained it. */
  training?: TrainingFacts;
  /** Importance of each band for each class; absent if the convolutions do not run along the bands. */
  bandWeights?: BandWeights;
}

const SCORES = objectOf({
  pixels: COUNT,
  oa: NUMBER,
  aa: NUMBER,
  kappa: NUMBER,
  confusion: listOf(listOf(COUNT)),
  classes: listOf(objectOf({ code: COUNT, pixels: COUNT, recall: NUMBER, precision: NUMBER, f1: NUMBER })),
});

const CANDIDATE = {
  classifier: { enum: CLASSIFIERS },
  strength: NUMBER,
  tuned: NUMBER,
  entropy: NUMBER,
  entropyError: NUMBER,
  temperature: NUMBER,
};

/** JSON Schema of `ClassifyFit`. */
export const CLASSIFY_FIT = objectOf(
  {
    classes: listOf(
      objectOf({ code: COUNT, name: TEXT, train: COUNT, validation: COUNT, mean: listOf(NUMBER) }),
    ),
    chosen: objectOf(CANDIDATE),
    compared: listOf(objectOf({ ...CANDIDATE, oa: NUMBER, aa: NUMBER, kappa: NUMBER })),
    scores: SCORES,
    calibration: objectOf({
      temperature: NUMBER,
      error: NUMBER,
      uncalibrated: NUMBER,
      bins: listOf(objectOf({ pixels: COUNT, probability: NUMBER, accuracy: NUMBER })),
    }),
    tiles: LABELLED_TILES,
    sizes: listOf(COUNT),
    rows: COUNT,
    files: { type: 'object', additionalProperties: TEXT },
  },
  { random: SCORES, training: TRAINING, bandWeights: BAND_WEIGHTS },
);

/** Trains the compared classifiers, and the one that is used for the map. */
export async function fitMap(
  fitting: LabelledFitting,
  { labels, classifier }: ClassifyInputs,
  rows: number,
): Promise<FittedAnalysis<ClassifyFit>> {
  const { codes, sums, data } = fitting;
  const compared: ComparedClassifier[] = [];
  for (const one of await tuneCandidates(fitting, classifier)) {
    const { oa, aa, kappa } = await validated(fitting, one);
    compared.push({ ...one, oa, aa, kappa });
  }
  const chosen = selectCandidate(compared, classifier);
  const { fitted, validating, scores, calibration } = await trainChosen(fitting, chosen);
  const { method, files, sizes } = await methodOf(fitting, fitted);
  const training = trainingFacts(fitting, fitted);
  const weights = await bandWeights(fitting, validating);
  const nameOf = (code: number) => labels.names?.[code] ?? `class ${code}`;
  const { classes } = sums.of([TRAIN, TUNE, VALIDATION]);
  const pixelsOf = (set: number, code: number) => sums.counts[set].get(code) ?? 0;
  return {
    map: {
      method,
      bands: codes.map((code) => classBandName(code, nameOf(code))),
      classes: { best: 'most', codes, names: codes.map(nameOf) },
    },
    fit: {
      classes: classes.map(({ code, mean }) => ({
        code,
        name: nameOf(code),
        mean: Array.from(mean),
        train: pixelsOf(TRAIN, code) + pixelsOf(TUNE, code),
        validation: pixelsOf(VALIDATION, code),
      })),
      chosen,
      compared,
      calibration,
      tiles: data.tiles,
      sizes,
      rows,
      scores: withCodes(scores, codes),
      files: Object.fromEntries(
        Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes).toString('base64')]),
      ),
      ...(training && { training }),
      ...(weights && { bandWeights: weights }),
    },
  };
}

/**
 * Returns the method of the map and the files of the model. The method uses the stored float32 weights, so that `predict` makes the same
 * map.
 */
async function methodOf(
  { data, nets }: Fitting,
  fitted: FittedClassifier,
): Promise<{ method: PixelMethod | NetMethod; files: Record<string, Uint8Array>; sizes: number[] }> {
  const bands = data.standard.centre.length;
  if (fitted.kind === 'net') {
    const { shape } = nets!.session;
    const files = await nets!.session.files(fitted.weights);
    return { method: netMethod(shape.name, shape.classes, files), files, sizes: [bands, shape.classes] };
  }
  const { layers } = fitted;
  const sizes = [bands, ...layers.map(({ bias }) => bias.length)];
  const files = saveClassifier({ ...data.standard, layers });
  return { method: layersMethod(parseNetwork('classifier', files['weights.bin'], sizes)), files, sizes };
}

/** Name of the band of probabilities of a class. */
export const classBandName = (code: number, name: string) => `${code} ${name}`;

/** Replaces the numbers of classes by their codes. */
export function withCodes(scores: AccuracyScores, codes: readonly number[]): AccuracyScores {
  return { ...scores, classes: scores.classes.map((one, i) => ({ ...one, code: codes[i] })) };
}
