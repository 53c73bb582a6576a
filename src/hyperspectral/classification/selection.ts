/**
 * Scores classifiers on ground that did not train them, chooses one, and computes its accuracy from a confusion matrix of pixels that were
 * used neither for its training nor for the choice.
 */
import { messageOf } from '../../errors.js';
import { bootstrapIntervals, type Interval, MIN_UNITS } from '../../utils/bootstrap.js';
import { COUNT, listOf, NUMBER, objectOf } from '../../utils/json-schema.js';
import {
  addReliability,
  NO_TEMPERATURE,
  noScores,
  type ReliabilityBin,
  SCORE_UNIT,
  type ScoreSums,
  TEMPERATURES,
} from '../dense-training.js';
import { singularCovariance } from '../errors.js';
import { ALL, FOLDS } from '../labelled-pixels.js';
import { withTemperature as layersWithTemperature } from '../methods/dense-network.js';
import {
  CLASSIFIERS,
  type ClassifierName,
  type FittedClassifier,
  type Fitting,
  fitClassifier,
  type LabelledFitting,
  REGULARISATION_STRENGTHS,
  scoreClassifier,
  scoredCodes,
} from './fit.js';

/** Score of a class. Plain JSON. */
export interface ClassAccuracy {
  code: number;
  /** Scored pixels. */
  pixels: number;
  /** Squares of ground that have scored pixels. */
  squares: number;
  /** Share of the pixels of the class that are classified correctly; 0 if there are none. */
  recall: number;
  /** Share of the pixels classified as this class that belong to it; 0 if there are none. */
  precision: number;
  f1: number;
  f1Interval?: Interval;
}

/** Accuracy on ground that did not train, with 95 % intervals by bootstrap over its squares, if there are enough. Plain JSON. */
export interface AccuracyScores {
  pixels: number;
  squares: number;
  /** Overall and average accuracy, 0 to 1. */
  oa: number;
  oaInterval?: Interval;
  aa: number;
  /** Cohen's kappa (Cohen 1960). */
  kappa: number;
  kappaInterval?: Interval;
  classes: ClassAccuracy[];
  /** Rows are labels, columns are predictions, in the order of the codes. */
  confusion: number[][];
}

/** JSON Schema of an interval. */
export const INTERVAL = { type: 'array', items: NUMBER, minItems: 2, maxItems: 2 };

/** JSON Schema of `AccuracyScores`. */
export const ACCURACY_SCORES = objectOf(
  {
    ...{ pixels: COUNT, squares: COUNT, oa: NUMBER, aa: NUMBER, kappa: NUMBER },
    confusion: listOf(listOf(COUNT)),
    classes: listOf(
      objectOf(
        { code: COUNT, pixels: COUNT, squares: COUNT, recall: NUMBER, precision: NUMBER, f1: NUMBER },
        { f1Interval: INTERVAL },
      ),
    ),
  },
  { oaInterval: INTERVAL, kappaInterval: INTERVAL },
);

const sum = (values: Iterable<number>) => {
  let total = 0;
  for (const value of values) total += value;
  return total;
};

const share = (part: number, total: number) => (total === 0 ? 0 : part / total);

/** `confusion`: row by row. Classes without a pixel do not count for the average accuracy. */
function measures(confusion: ArrayLike<number>, size: number) {
  const rows = new Float64Array(size);
  const columns = new Float64Array(size);
  let right = 0;
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++) {
      const count = confusion[row * size + column];
      rows[row] += count;
      columns[column] += count;
      if (row === column) right += count;
    }
  const pixels = sum(rows);
  const classes = Array.from(rows, (labelled, i) => {
    const own = confusion[i * size + i];
    const [recall, precision] = [share(own, labelled), share(own, columns[i])];
    return { pixels: labelled, recall, precision, f1: share(2 * own, labelled + columns[i]) };
  });
  const seen = classes.filter((one) => one.pixels > 0);
  const oa = share(right, pixels);
  const chance = share(sum(rows.map((row, i) => row * columns[i])), pixels ** 2);
  const kappa = chance === 1 ? 0 : (oa - chance) / (1 - chance);
  return { pixels, oa, kappa, classes, aa: share(sum(seen.map(({ recall }) => recall)), seen.length) };
}

/** Pixels of a square by true class * number of classes + predicted class. */
export type SquareTable = ReadonlyMap<number, number>;

/** `squares`: the confusion matrices of the squares. */
export function accuracyScores(squares: readonly SquareTable[], codes: readonly number[]): AccuracyScores {
  const size = codes.length;
  const pooled = (drawn: (square: number) => number) => {
    const confusion = new Float64Array(size ** 2);
    for (const [s, table] of squares.entries()) {
      const times = drawn(s);
      if (times > 0) for (const [at, count] of table) confusion[at] += times * count;
    }
    return confusion;
  };
  const confusion = pooled(() => 1);
  const { classes, ...all } = measures(confusion, size);
  const [oaInterval, kappaInterval, ...f1Intervals] = bootstrapIntervals([squares.length], (drawn) => {
    const { oa, kappa, classes } = measures(
      pooled((square) => drawn[square]),
      size,
    );
    return [oa, kappa, ...classes.map(({ pixels, f1 }) => (pixels === 0 ? Number.NaN : f1))];
  });
  return {
    ...all,
    squares: squares.length,
    ...(oaInterval && { oaInterval }),
    ...(kappaInterval && { kappaInterval }),
    classes: classes.map((one, c) => {
      const own = squares.filter((table) => [...table.keys()].some((at) => Math.floor(at / size) === c));
      const f1Interval = own.length >= MIN_UNITS ? f1Intervals[c] : undefined;
      return { code: codes[c], squares: own.length, ...one, ...(f1Interval && { f1Interval }) };
    }),
    confusion: codes.map((_, row) => Array.from(confusion.subarray(row * size, (row + 1) * size))),
  };
}

/** A classifier with its best regularization strength. Plain JSON. */
export interface ClassifierCandidate {
  classifier: ClassifierName;
  strength: number;
  /** Mean cross entropy of pixels of ground that did not train, with the temperature. */
  entropy: number;
  /** Its difference to that of the best candidate, and the standard error of the difference over squares; null with fewer than two. */
  excess: number;
  excessError: number | null;
  /** 1 if no other temperature helps. */
  temperature: number;
}

/** Predicted probabilities compared with the share of correct pixels. Plain JSON. */
export interface Calibration {
  /** Divides the values of the last layer; above 1 it makes probabilities less certain. */
  temperature: number;
  /** Expected calibration error, 0 to 1 (Guo et al. 2017). */
  error: number;
  /** The same error without temperatures. */
  uncalibrated: number;
  /** Non-empty bins by tenths of the largest probability: number of pixels, mean probability, and share of correct pixels. */
  bins: { pixels: number; probability: number; accuracy: number }[];
}

/** A classifier of one strength, and its scores on each fold by a fit to the others. */
export interface CrossValidated {
  classifier: ClassifierName;
  strength: number;
  folds: readonly ScoreSums[];
}

/** Scores the requested classifier and the baselines. If none is requested, also a perceptron; networks would be too slow. */
export async function crossValidate(
  fitting: LabelledFitting,
  requested: ClassifierName | undefined,
): Promise<CrossValidated[]> {
  const names = CLASSIFIERS.filter(
    (name) => name === requested || isBaseline(name) || (name === 'mlp' && requested === undefined),
  );
  const found: CrossValidated[] = [];
  for (const name of names)
    try {
      const own: CrossValidated[] = [];
      for (const strength of REGULARISATION_STRENGTHS[name].toReversed())
        own.push({ classifier: name, strength, folds: await scoresOfFolds(fitting, name, strength) });
      found.push(...own);
    } catch (error) {
      // Only discriminants need the inverse of the covariance.
      if (!singularCovariance.is(error) || requested === name) throw error;
      fitting.analysed.job.log('warning', `${name} is left out: ${messageOf(error)}`);
    }
  return found;
}

/** LDA and logistic regression are always trained as baselines. */
export const isBaseline = (name: ClassifierName) => name === 'lda' || name === 'logistic';

async function scoresOfFolds(fitting: LabelledFitting, name: ClassifierName, strength: number) {
  const scores: ScoreSums[] = [];
  for (let fold = 0; fold < FOLDS; fold++) {
    const codes = scoredCodes(fitting, fold);
    if (codes.size === 0) {
      scores.push(noScores());
      continue;
    }
    const scored = Uint8Array.from(fitting.codes, (code) => Number(codes.has(code)));
    const fitted = await fitClassifier(fitting, name, strength, fold);
    scores.push(await scoreClassifier(fitting, fitted, { fold, scored }));
  }
  return scores;
}

const EVERY_FOLD = Array.from({ length: FOLDS }, (_, fold) => fold);

/** Sums by square. */
type BySquare = Map<number, number>;

/** A candidate on some folds: the sums of cross entropies by square, in units of `SCORE_UNIT`. */
interface Tuned {
  one: CrossValidated;
  /** Index of `TEMPERATURES`. */
  temperature: number;
  losses: BySquare;
}

/** Scored pixels of each square. */
function pixelsOf({ folds }: CrossValidated, of: readonly number[]): BySquare {
  const pixels: BySquare = new Map();
  for (const fold of of)
    for (const [square, { table }] of folds[fold].squares) add(pixels, square, sum(table.values()));
  return pixels;
}

function add(to: BySquare, square: number, value: number): void {
  to.set(square, (to.get(square) ?? 0) + value);
}

function bestTemperature({ folds }: CrossValidated, of: readonly number[]): number {
  if (of.length === 0) return NO_TEMPERATURE;
  const totals = TEMPERATURES.map((_, t) =>
    sum(of.flatMap((fold) => [...folds[fold].squares.values()].map(({ losses }) => losses[t]))),
  );
  return totals.indexOf(Math.min(...totals));
}

/**
 * Chooses a temperature on the other folds for each fold, and uses temperatures only if these lower the cross entropy by more than one
 * standard error and do not raise the calibration error.
 */
function tune(one: CrossValidated, of: readonly number[]): Tuned {
  const plain: BySquare = new Map();
  const losses: BySquare = new Map();
  const gains: BySquare = new Map();
  const bins = [0, 1].map(() => noScores().reliability[0]);
  for (const fold of of) {
    const chosen = bestTemperature(
      one,
      of.filter((other) => other !== fold),
    );
    const { squares, reliability } = one.folds[fold];
    for (const [square, { losses: own }] of squares) {
      add(plain, square, own[NO_TEMPERATURE]);
      add(losses, square, own[chosen]);
      add(gains, square, own[NO_TEMPERATURE] - own[chosen]);
    }
    addReliability(bins.slice(0, 1), [reliability[chosen]]);
    addReliability(bins.slice(1), [reliability[NO_TEMPERATURE]]);
  }
  const { value, error } = meanOver(gains, pixelsOf(one, of));
  const helps = value > error && calibrationError(bins[0]) <= calibrationError(bins[1]);
  if (!helps) return { one, temperature: NO_TEMPERATURE, losses: plain };
  return { one, temperature: bestTemperature(one, of), losses };
}

/** Mean over the pixels, and its standard error over squares (Cochran 1977, section 2.11); infinite with fewer than two squares. */
function meanOver(values: BySquare, pixels: BySquare): { value: number; error: number } {
  const total = sum(pixels.values());
  const count = pixels.size;
  const value = share(sum(values.values()), total);
  let squares = 0;
  for (const [square, own] of pixels) squares += ((values.get(square) ?? 0) - value * own) ** 2;
  const error = count < 2 ? Infinity : Math.sqrt((count / (count - 1)) * squares) / total;
  return { value: value * SCORE_UNIT, error: error * SCORE_UNIT };
}

/** Excess of the cross entropy of a candidate over that of another one. Networks may have fewer pixels, because memory limits patches. */
function excessOver(a: Tuned, b: Tuned, of: readonly number[]): { value: number; error: number } {
  if (a === b) return { value: 0, error: 0 };
  const [own, other] = [pixelsOf(a.one, of), pixelsOf(b.one, of)];
  const differences: BySquare = new Map();
  for (const [square, pixels] of own) {
    const theirs = share(b.losses.get(square) ?? 0, other.get(square) ?? 0);
    add(differences, square, (a.losses.get(square) ?? 0) - theirs * pixels);
  }
  return meanOver(differences, own);
}

function entropyOf({ one, losses }: Tuned, of: readonly number[]): number {
  return share(sum(losses.values()), sum(pixelsOf(one, of).values())) * SCORE_UNIT;
}

function leastEntropy(tuned: readonly Tuned[], of: readonly number[]): Tuned {
  return tuned.reduce((best, one) => (entropyOf(one, of) < entropyOf(best, of) ? one : best));
}

/**
 * Returns the first candidate whose cross entropy is within one standard error of the least one (Hastie et al. 2009, section 7.10), the
 * error being that of paired differences over squares of ground. `tuned`: the simplest first, not empty.
 */
function simplestWithinError(tuned: readonly Tuned[], of: readonly number[]): Tuned {
  const best = leastEntropy(tuned, of);
  return tuned.find((one) => {
    const { value, error } = excessOver(one, best, of);
    return value <= error;
  })!;
}

/** Chooses the strength of each classifier by its scores on some folds. A perceptron has several minima, so its scores are noisy. */
function bestStrengths(all: readonly CrossValidated[], of: readonly number[]): Tuned[] {
  return CLASSIFIERS.flatMap((name) => {
    const own = all.filter(({ classifier }) => classifier === name).map((one) => tune(one, of));
    if (own.length === 0) return [];
    return [name === 'mlp' ? simplestWithinError(own, of) : leastEntropy(own, of)];
  });
}

/** Returns the requested classifier, or the simplest of those that are not clearly worse than the best. */
function choose(
  all: readonly CrossValidated[],
  of: readonly number[],
  requested: ClassifierName | undefined,
): Tuned {
  const best = bestStrengths(all, of);
  return best.find(({ one }) => one.classifier === requested) ?? simplestWithinError(best, of);
}

/** The choice by all folds for each classifier, the simplest first, and the classifier of the map among them. */
export function selectCandidate(
  all: readonly CrossValidated[],
  requested: ClassifierName | undefined,
): { candidates: ClassifierCandidate[]; chosen: ClassifierCandidate } {
  const best = bestStrengths(all, EVERY_FOLD);
  const least = leastEntropy(best, EVERY_FOLD);
  const candidates = best.map((tuned): ClassifierCandidate => {
    const { value, error } = excessOver(tuned, least, EVERY_FOLD);
    const { classifier, strength } = tuned.one;
    return {
      ...{ classifier, strength, entropy: entropyOf(tuned, EVERY_FOLD), excess: value },
      excessError: Number.isFinite(error) ? error : null,
      temperature: TEMPERATURES[tuned.temperature],
    };
  });
  const { classifier } = choose(all, EVERY_FOLD, requested).one;
  return { candidates, chosen: candidates.find((one) => one.classifier === classifier)! };
}

/**
 * Scores the procedure on each fold by the classifier that the scores on the other folds choose, so that no score depends on a choice by
 * the same pixels. `codes`: those of the classes.
 */
export function reportedScores(
  all: readonly CrossValidated[],
  codes: readonly number[],
  requested: ClassifierName | undefined,
): { scores: AccuracyScores; calibration: Omit<Calibration, 'temperature'> } {
  const squares = new Map<number, Map<number, number>>();
  const bins = [0, 1].map(() => noScores().reliability[0]);
  for (const fold of EVERY_FOLD) {
    const others = EVERY_FOLD.filter((other) => other !== fold);
    const { one, temperature } = choose(all, others, requested);
    const scores = one.folds[fold];
    for (const [square, { table }] of scores.squares) {
      const own = squares.get(square) ?? new Map<number, number>();
      for (const [at, count] of table) own.set(at, (own.get(at) ?? 0) + count);
      squares.set(square, own);
    }
    addReliability(bins.slice(0, 1), [scores.reliability[temperature]]);
    addReliability(bins.slice(1), [scores.reliability[NO_TEMPERATURE]]);
  }
  const [error, uncalibrated] = bins.map(calibrationError);
  return {
    scores: accuracyScores([...squares.values()], codes),
    calibration: { error, uncalibrated, bins: sharesOf(bins[0]) },
  };
}

function sharesOf(bins: readonly ReliabilityBin[]): Calibration['bins'] {
  return bins
    .filter(({ pixels }) => pixels > 0)
    .map(({ pixels, right, probability }) => ({
      pixels,
      accuracy: right / pixels,
      probability: (probability * SCORE_UNIT) / pixels,
    }));
}

function calibrationError(bins: readonly ReliabilityBin[]): number {
  const shares = sharesOf(bins);
  const apart = sum(shares.map((bin) => bin.pixels * Math.abs(bin.accuracy - bin.probability)));
  return share(apart, sum(shares.map(({ pixels }) => pixels)));
}

/** Trains a classifier on all labelled pixels. */
export async function trainChosen(
  fitting: Fitting,
  { classifier, strength, temperature }: ClassifierCandidate,
): Promise<FittedClassifier> {
  return withTemperature(fitting, await fitClassifier(fitting, classifier, strength, ALL), temperature);
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
