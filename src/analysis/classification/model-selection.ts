/** Chooses a classifier on the pixels for tuning, and validates on those that had no part in it. */
import { messageOf } from '../../errors.js';
import { withTemperature as layersWithTemperature } from '../dense-networks/dense-network.js';
import { SCORE_UNIT } from '../dense-networks/gradient.js';
import { type ScoreSums, SQUARED_ENTROPY_UNIT } from '../dense-networks/score-pixels.js';
import { singularCovariance } from '../errors.js';
import { TRAIN, TUNE, VALIDATION } from '../labels/split.js';
import { type AccuracyScores, accuracyScores as tableScores } from './accuracy.js';
import {
  CLASSIFIERS,
  type ClassifierName,
  type FittedClassifier,
  type Fitting,
  fitClassifier,
  REGULARISATION_STRENGTHS,
  scoreClassifier,
} from './fit-classifier.js';

/** A classifier with its best regularization strength. Plain JSON. */
export interface ClassifierCandidate {
  classifier: ClassifierName;
  strength: number;
  /** Overall accuracy on the pixels for tuning, after a fit to those for training. */
  tuned: number;
  /** Mean cross entropy on the same pixels, with this temperature. */
  entropy: number;
  /** The standard error of that mean. */
  entropyError: number;
  /** The temperature with the least cross entropy; 1 if there are no pixels for tuning. */
  temperature: number;
}

/** Predicted probabilities compared with the share of correct pixels. Plain JSON. */
export interface Calibration {
  /** Divides the values of the last layer; above 1 it makes probabilities less certain. */
  temperature: number;
  /** Expected calibration error, 0 to 1 (Guo et al. 2017). */
  error: number;
  /** The same error without the temperature. */
  uncalibrated: number;
  /** Bins by tenths of the largest probability, without empty ones: number of pixels, mean probability, and share of correct ones. */
  bins: { pixels: number; probability: number; accuracy: number }[];
}

/** Trains the wanted classifier and the baselines. If none is wanted, trains a perceptron too; networks are too slow for that. */
export async function tuneCandidates(
  fitting: Fitting,
  wanted: ClassifierName | undefined,
): Promise<ClassifierCandidate[]> {
  const names = CLASSIFIERS.filter(
    (name) => name === wanted || isBaseline(name) || (name === 'mlp' && wanted === undefined),
  );
  const found: ClassifierCandidate[] = [];
  for (const name of names) {
    try {
      found.push(await bestStrength(fitting, name));
    } catch (error) {
      // Only discriminants need the inverse of the covariance.
      if (!singularCovariance.is(error) || wanted === name) throw error;
      fitting.job.log('warning', `${name} is left out: ${messageOf(error)}`);
    }
  }
  return found;
}

/** LDA and logistic regression are always trained, as baselines. */
export const isBaseline = (name: ClassifierName) => name === 'lda' || name === 'logistic';

async function bestStrength(fitting: Fitting, name: ClassifierName): Promise<ClassifierCandidate> {
  const tuned: ClassifierCandidate[] = [];
  for (const strength of REGULARISATION_STRENGTHS[name]) tuned.push(await tune(fitting, name, strength));
  // Only the loss of a perceptron has several minima: which one is found depends on the seed and on rounding.
  return name === 'mlp' ? oneStandardErrorRule(tuned) : strongestOfBest(tuned);
}

/** Ties go to the strongest regularization, which relies least on the data. Without pixels for tuning all strengths tie. */
const strongestOfBest = (tuned: readonly ClassifierCandidate[]) =>
  tuned.reduce((best, one) => (one.entropy <= best.entropy ? one : best));

/**
 * Returns the candidate of the strongest regularization whose cross entropy is at most one standard error above the least one (Hastie et al.
 * 2009, section 7.10): with few pixels for tuning, smaller differences are chance. `tuned`: by rising strength, not empty.
 */
export function oneStandardErrorRule(tuned: readonly ClassifierCandidate[]): ClassifierCandidate {
  const best = tuned.reduce((best, one) => (one.entropy < best.entropy ? one : best));
  return tuned.findLast(({ entropy }) => entropy <= best.entropy + best.entropyError)!;
}

const TEMPERATURES = Array.from({ length: 33 }, (_, i) => 2 ** ((i - 8) / 8));

async function tune(
  fitting: Fitting,
  classifier: ClassifierName,
  strength: number,
): Promise<ClassifierCandidate> {
  const untuned = { classifier, strength, tuned: 0, entropy: 0, entropyError: 0, temperature: 1 };
  if (fitting.data.pixels[TUNE] === 0) return untuned;
  const fitted = await fitClassifier(fitting, classifier, strength, [TRAIN]);
  const { table, losses, squares } = await scoreClassifier(fitting, fitted, {
    set: TUNE,
    temperatures: TEMPERATURES,
  });
  // A network may have fewer pixels than the others, since memory limits its patches.
  const pixels = table.reduce((sum, count) => sum + count, 0);
  if (pixels === 0) return untuned;
  const at = losses.indexOf(Math.min(...losses));
  const entropy = (losses[at]! * SCORE_UNIT) / pixels;
  const variance = Math.max(0, (squares[at]! * SQUARED_ENTROPY_UNIT) / pixels - entropy ** 2);
  return {
    ...{ classifier, strength, tuned: tableScores(table, classNumbers(fitting)).oa },
    entropy,
    entropyError: Math.sqrt(variance / pixels),
    temperature: TEMPERATURES[at]!,
  };
}

const classNumbers = ({ data }: Fitting) => Array.from({ length: data.classes }, (_, i) => i);

/**
 * Returns the wanted candidate, or the one with the least cross entropy on the pixels for tuning; ties go to the simplest. Accuracy is no
 * criterion: with few pixels for tuning, its differences between classifiers are within chance.
 */
export function selectCandidate(
  all: readonly ClassifierCandidate[],
  wanted: ClassifierName | undefined,
): ClassifierCandidate {
  const named = all.find(({ classifier }) => classifier === wanted);
  return named ?? all.reduce((best, one) => (one.entropy < best.entropy ? one : best));
}

/** Scores on the validation pixels of a candidate that all other pixels have trained. */
export async function validated(
  fitting: Fitting,
  { classifier, strength }: ClassifierCandidate,
): Promise<AccuracyScores> {
  const fitted = await fitClassifier(fitting, classifier, strength, [TRAIN, TUNE]);
  const { table } = await scoreClassifier(fitting, fitted, { set: VALIDATION });
  return tableScores(table, classNumbers(fitting));
}

/** A classifier that all labelled pixels have trained, with scores of one that the validation pixels have not. */
export interface Trained {
  fitted: FittedClassifier;
  /** The classifier that was scored. */
  validating: FittedClassifier;
  scores: AccuracyScores;
  calibration: Calibration;
}

export async function trainChosen(fitting: Fitting, candidate: ClassifierCandidate): Promise<Trained> {
  const { classifier, strength, temperature } = candidate;
  const validating = await fitClassifier(fitting, classifier, strength, [TRAIN, TUNE]);
  const sums = await scoreClassifier(fitting, validating, {
    set: VALIDATION,
    temperatures: [temperature, 1],
  });
  const all = await fitClassifier(fitting, classifier, strength, [TRAIN, TUNE, VALIDATION]);
  return {
    fitted: withTemperature(fitting, all, temperature),
    validating,
    scores: tableScores(sums.table, classNumbers(fitting)),
    calibration: calibrationOf(sums, temperature),
  };
}

/** The last layer of a network is its last kernel and bias. */
function withTemperature({ nets }: Fitting, fitted: FittedClassifier, temperature: number): FittedClassifier {
  if (fitted.kind === 'layers')
    return { ...fitted, layers: layersWithTemperature(fitted.layers, temperature) };
  const last = nets!.session.parameters.slice(-2).reduce((sum, { size }) => sum + size, 0);
  const weights = fitted.weights.slice();
  for (let at = weights.length - last; at < weights.length; at++) weights[at]! /= temperature;
  return { ...fitted, weights };
}

function calibrationOf({ reliability }: ScoreSums, temperature: number): Calibration {
  const [calibrated, plain] = reliability.map((bins) =>
    bins
      .filter(({ pixels }) => pixels > 0)
      .map(({ pixels, right, probability }) => ({
        ...{ pixels, accuracy: right / pixels },
        probability: (probability * SCORE_UNIT) / pixels,
      })),
  );
  const errorOf = (bins: Calibration['bins']) => {
    const pixels = bins.reduce((sum, bin) => sum + bin.pixels, 0);
    const apart = bins.reduce((sum, bin) => sum + bin.pixels * Math.abs(bin.accuracy - bin.probability), 0);
    return pixels === 0 ? 0 : apart / pixels;
  };
  return { temperature, error: errorOf(calibrated!), uncalibrated: errorOf(plain!), bins: calibrated! };
}
