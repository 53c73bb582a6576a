/**
 * Chooses a classifier on the tuning pixels, and computes its accuracy from a confusion matrix of pixels that were used neither for
 * training nor for the choice.
 */
import { messageOf } from '../../errors.js';
import { SCORE_UNIT, type ScoreSums, SQUARED_ENTROPY_UNIT } from '../dense-training.js';
import { singularCovariance } from '../errors.js';
import { TRAIN, TUNE, VALIDATION } from '../labelled-pixels.js';
import { withTemperature as layersWithTemperature } from '../methods/dense-network.js';
import {
  CLASSIFIERS,
  type ClassifierName,
  type FittedClassifier,
  type Fitting,
  fitClassifier,
  REGULARISATION_STRENGTHS,
  scoreClassifier,
} from './fit.js';

interface ClassAccuracy {
  code: number;
  /** Labelled pixels. */
  pixels: number;
  /** Share of the pixels of the class that are classified correctly; 0 if there are none. */
  recall: number;
  /** Share of the pixels classified as this class that belong to it; 0 if there are none. */
  precision: number;
  f1: number;
}

export interface AccuracyScores {
  pixels: number;
  /** Overall and average accuracy, 0 to 1. */
  oa: number;
  aa: number;
  /** Cohen's kappa (Cohen 1960). */
  kappa: number;
  classes: ClassAccuracy[];
  /** Rows are labels, columns are predictions, in the order of the codes. */
  confusion: number[][];
}

/** `table`: row by row. Classes without a pixel do not count for the average accuracy. */
export function accuracyScores(table: readonly number[], codes: readonly number[]): AccuracyScores {
  const size = codes.length;
  const confusion = codes.map((_, row) => table.slice(row * size, (row + 1) * size));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const rows = confusion.map(sum);
  const columns = codes.map((_, column) => sum(confusion.map((row) => row[column])));
  const pixels = sum(rows);
  const right = sum(confusion.map((row, i) => row[i]));
  const share = (part: number, total: number) => (total === 0 ? 0 : part / total);
  const classes = codes.map((code, i): ClassAccuracy => {
    const recall = share(confusion[i][i], rows[i]);
    const precision = share(confusion[i][i], columns[i]);
    const f1 = share(2 * recall * precision, recall + precision);
    return { code, pixels: rows[i], recall, precision, f1 };
  });
  const seen = classes.filter((one) => one.pixels > 0);
  const oa = share(right, pixels);
  const chance = share(sum(rows.map((row, i) => row * columns[i])), pixels ** 2);
  return {
    pixels,
    oa,
    kappa: chance === 1 ? 0 : (oa - chance) / (1 - chance),
    classes,
    confusion,
    aa: share(sum(seen.map(({ recall }) => recall)), seen.length),
  };
}

/** A classifier with its best regularization strength. Plain JSON. */
export interface ClassifierCandidate {
  classifier: ClassifierName;
  strength: number;
  /** Overall accuracy on the tuning pixels, after a fit to the training pixels. */
  tuned: number;
  /** Mean cross entropy on the same pixels, with this temperature. */
  entropy: number;
  /** The standard error of that mean. */
  entropyError: number;
  /** The temperature with the least cross entropy; 1 if there are no tuning pixels. */
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
  /** Non-empty bins by tenths of the largest probability: number of pixels, mean probability, and share of correct pixels. */
  bins: { pixels: number; probability: number; accuracy: number }[];
}

/** Trains the requested classifier and the baselines. If none is requested, also trains a perceptron; networks would be too slow. */
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
      fitting.analysed.job.log('warning', `${name} is left out: ${messageOf(error)}`);
    }
  }
  return found;
}

/** LDA and logistic regression are always trained as baselines. */
export const isBaseline = (name: ClassifierName) => name === 'lda' || name === 'logistic';

async function bestStrength(fitting: Fitting, name: ClassifierName): Promise<ClassifierCandidate> {
  const tuned: ClassifierCandidate[] = [];
  for (const strength of REGULARISATION_STRENGTHS[name]) tuned.push(await tune(fitting, name, strength));
  // Only the loss of a perceptron has several minima. The seed and rounding errors decide which one is found.
  return name === 'mlp' ? oneStandardErrorRule(tuned) : strongestOfBest(tuned);
}

/** Ties go to the strongest regularization, which relies least on the data. Without tuning pixels, all strengths tie. */
const strongestOfBest = (tuned: readonly ClassifierCandidate[]) =>
  tuned.reduce((best, one) => (one.entropy <= best.entropy ? one : best));

/**
 * Returns the candidate of the strongest regularization whose cross entropy is at most one standard error above the least one (Hastie et
 * al. 2009, section 7.10). With few tuning pixels, smaller differences are not significant. `tuned`: by rising strength, not empty.
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
  // A network may have fewer pixels than other classifiers, because memory limits its patches.
  const pixels = table.reduce((sum, count) => sum + count, 0);
  if (pixels === 0) return untuned;
  const at = losses.indexOf(Math.min(...losses));
  const entropy = (losses[at] * SCORE_UNIT) / pixels;
  const variance = Math.max(0, (squares[at] * SQUARED_ENTROPY_UNIT) / pixels - entropy ** 2);
  return {
    classifier,
    strength,
    tuned: accuracyScores(table, classNumbers(fitting)).oa,
    entropy,
    entropyError: Math.sqrt(variance / pixels),
    temperature: TEMPERATURES[at],
  };
}

const classNumbers = ({ data }: Fitting) => Array.from({ length: data.classes }, (_, i) => i);

/**
 * Returns the requested candidate, or the one with the least cross entropy on the tuning pixels; ties go to the simplest. Accuracy is not
 * the criterion: with few tuning pixels, its differences between classifiers are not significant.
 */
export function selectCandidate(
  all: readonly ClassifierCandidate[],
  wanted: ClassifierName | undefined,
): ClassifierCandidate {
  const named = all.find(({ classifier }) => classifier === wanted);
  return named ?? all.reduce((best, one) => (one.entropy < best.entropy ? one : best));
}

/** Scores a candidate on the validation pixels after training on all other pixels. */
export async function validated(
  fitting: Fitting,
  { classifier, strength }: ClassifierCandidate,
): Promise<AccuracyScores> {
  const fitted = await fitClassifier(fitting, classifier, strength, [TRAIN, TUNE]);
  const { table } = await scoreClassifier(fitting, fitted, { set: VALIDATION });
  return accuracyScores(table, classNumbers(fitting));
}

/** Trains a classifier on all labelled pixels, and scores `validating`, which is trained without the validation pixels. */
export async function trainChosen(fitting: Fitting, candidate: ClassifierCandidate) {
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
    scores: accuracyScores(sums.table, classNumbers(fitting)),
    calibration: calibrationOf(sums, temperature),
  };
}

/** Divides the weights of the last layer, which for a network are the last kernel and bias. */
function withTemperature({ nets }: Fitting, fitted: FittedClassifier, temperature: number): FittedClassifier {
  if (fitted.kind === 'layers')
    return { ...fitted, layers: layersWithTemperature(fitted.layers, temperature) };
  const last = nets!.session.parameters.slice(-2).reduce((sum, { size }) => sum + size, 0);
  const weights = fitted.weights.slice();
  for (let at = weights.length - last; at < weights.length; at++) weights[at] /= temperature;
  return { ...fitted, weights };
}

function calibrationOf({ reliability }: ScoreSums, temperature: number): Calibration {
  const [calibrated, plain] = reliability.map((bins) =>
    bins
      .filter(({ pixels }) => pixels > 0)
      .map(({ pixels, right, probability }) => ({
        pixels,
        accuracy: right / pixels,
        probability: (probability * SCORE_UNIT) / pixels,
      })),
  );
  const errorOf = (bins: Calibration['bins']) => {
    const pixels = bins.reduce((sum, bin) => sum + bin.pixels, 0);
    const apart = bins.reduce((sum, bin) => sum + bin.pixels * Math.abs(bin.accuracy - bin.probability), 0);
    return pixels === 0 ? 0 : apart / pixels;
  };
  return { temperature, error: errorOf(calibrated), uncalibrated: errorOf(plain), bins: calibrated };
}
