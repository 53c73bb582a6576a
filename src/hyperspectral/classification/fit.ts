/** Reads the labelled pixels of a job, and fits classifiers to sets of them. */

import { requireCollections } from '../../query/index.js';
import { randomStream } from '../../utils/random.js';
import {
  type AlikeCollection,
  type AnalysedCollection,
  type AnalysisInputs,
  DEFAULT_SEED,
  integer,
  SEED,
  selectBands,
} from '../analysis.js';
import { isNet, NET_SETTINGS, NETS, type NetName } from '../cnn/net.js';
import { NetSession } from '../cnn/session.js';
import { type TrainedNet, trainNet } from '../cnn/training.js';
import { type LabelledSums, labelledSums, squareCounts } from '../collection-passes.js';
import type { ScoreSums } from '../dense-training.js';
import { fewLabels, tooFewPixels } from '../errors.js';
import {
  ALL,
  drawFolds,
  FOLDS,
  type Folds,
  GAP_PX,
  type SplitKind,
  type SquareCounts,
} from '../labelled-pixels.js';
import { LABELS, type Labels } from '../labels.js';
import { discriminant, withinClasses } from '../linear-algebra.js';
import {
  countOf,
  type DenseLayer,
  layerViews,
  type Sizes,
  type Standardisation,
} from '../methods/dense-network.js';
import { minimiseLbfgs, preconditioner } from '../optimizers.js';
import { PRECISIONS, type Precision } from '../samples.js';
import { gatherTrainingData, lossOf, scoresOfRuns, scoresOn, type TrainingData } from './dataset.js';

/** Linear discriminants with shrinkage, logistic regression, a multilayer perceptron, and convolutional networks; the simplest first. */
export const CLASSIFIERS = ['lda', 'logistic', 'mlp', ...NETS] as const;
export type ClassifierName = (typeof CLASSIFIERS)[number];

/**
 * Regularization strengths that are compared, the weakest first: the shrinkage of `lda`; the L2 penalty of `logistic` and `mlp`, a factor
 * of half the squared weights that is added to the mean cross entropy; the weight decay of Adam for networks. With a longer list the choice
 * would be random, because the squares are few.
 */
export const REGULARISATION_STRENGTHS: Record<ClassifierName, readonly number[]> = {
  lda: [1e-3, 1e-2, 0.1],
  logistic: [1e-4, 1e-3, 1e-2],
  mlp: [1e-3, 1e-2],
  cnn1d: [1e-3],
  resnet3d: [1e-3],
};

const HIDDEN_LAYER_SIZES = { logistic: [], mlp: [64, 32] };
const MAX_ITERATIONS = { logistic: 100, mlp: 120 };

export interface Fitting {
  analysed: AnalysedCollection;
  data: TrainingData;
  sums: LabelledSums;
  folds: Folds;
  seed: number;
  /** Present if the requested classifier is a network that an engine trains. */
  nets?: { session: NetSession; epochs: number };
  /** Cache of fitted classifiers, by their parameters. */
  known: Map<string, FittedClassifier>;
}

/** A classifier for standardised values. */
export type FittedClassifier = FittedLayers | ({ kind: 'net' } & TrainedNet);

interface FittedLayers {
  kind: 'layers';
  layers: DenseLayer[];
  /** Evaluations of the loss by L-BFGS, and bytes of the gradients that a node sends. Absent for discriminants. */
  descent?: { evaluations: number; bytes: number };
}

/** Throws TW_ANALYSIS_SINGULAR, TW_ANALYSIS_TOO_FEW_PIXELS and TW_ANALYSIS_NET. */
export async function fitClassifier(
  fitting: Fitting,
  name: ClassifierName,
  strength: number,
  training: number,
): Promise<FittedClassifier> {
  const key = `${name} ${strength} ${training}`;
  const fitted = fitting.known.get(key) ?? (await fitNew(fitting, name, strength, training));
  fitting.known.set(key, fitted);
  return fitted;
}

async function fitNew(
  fitting: Fitting,
  name: ClassifierName,
  strength: number,
  training: number,
): Promise<FittedClassifier> {
  if (isNet(name)) {
    const { nets, seed, analysed } = fitting;
    const { session, epochs } = nets!;
    return { kind: 'net', ...(await trainNet(session, { training, epochs, strength, seed }, analysed.job)) };
  }
  if (name === 'lda') return { kind: 'layers', layers: [discriminantLayer(fitting, strength, training)] };
  return fitNetwork(fitting, name, strength, training);
}

/** Scores a classifier on a fold, over all runs. `scored`: 1 for each class whose pixels are scored. */
export async function scoreClassifier(
  { analysed, data, nets }: Fitting,
  fitted: FittedClassifier,
  { fold, scored }: { fold: number; scored: Uint8Array },
): Promise<ScoreSums> {
  if (fitted.kind === 'layers') return scoresOn(analysed, data, { fold, layers: fitted.layers, scored });
  const own = await nets!.session.scores(fitted.weights, fold, scored);
  return scoresOfRuns(own, analysed.job, data.classes);
}

/** The bias of a class without a training pixel. */
const IMPOSSIBLE = -1e6;

function discriminantLayer({ sums, data }: Fitting, shrinkage: number, training: number): DenseLayer {
  const of = sums(training);
  const { centre, deviation } = data.standard;
  const bands = centre.length;
  const { weights, bias } = discriminant(withinClasses(of, of.classes), of.mean, of.classes, shrinkage);
  const layer = {
    weights: new Float64Array(data.classes * bands),
    bias: new Float64Array(data.classes).fill(IMPOSSIBLE),
  };
  for (const [row, { code }] of of.classes.entries()) {
    const c = data.classOf[code];
    layer.bias[c] = bias[row];
    for (let b = 0; b < bands; b++) {
      const weight = weights[row * bands + b];
      layer.weights[c * bands + b] = weight * deviation[b];
      layer.bias[c] += weight * (centre[b] - of.mean[b]);
    }
  }
  return layer;
}

async function fitNetwork(
  { analysed, data, sums, seed }: Fitting,
  name: 'logistic' | 'mlp',
  penalty: number,
  training: number,
): Promise<FittedLayers> {
  const sizes = [data.standard.centre.length, ...HIDDEN_LAYER_SIZES[name], data.classes];
  const descent = { evaluations: 0, bytes: 0 };
  const evaluate = async (parameters: Float64Array) => {
    const { value, gradient, bytes } = await lossOf(analysed, data, { training, sizes, parameters });
    descent.evaluations++;
    descent.bytes += bytes;
    let squares = 0;
    for (const [l, { weights }] of layerViews(parameters, sizes).entries()) {
      const slopes = layerViews(gradient, sizes)[l].weights;
      for (let at = 0; at < weights.length; at++) {
        squares += weights[at] ** 2;
        slopes[at] += penalty * weights[at];
      }
    }
    return { value: value + (penalty / 2) * squares, gradient };
  };
  const { deviation } = data.standard;
  const [bands] = sizes;
  const covariance = sums(training).covariance.map(
    (value, at) => value / (deviation[at % bands] * deviation[Math.floor(at / bands)]),
  );
  const parameters = await minimiseLbfgs(initialParameters(sizes, seed), evaluate, {
    iterations: MAX_ITERATIONS[name],
    precondition: preconditioner(covariance, sizes, penalty),
    onIteration: (iteration, value) => {
      analysed.job.signal.throwIfAborted();
      analysed.job.message(
        `training ${name}, penalty ${penalty}: iteration ${iteration}, loss ${value.toFixed(4)}`,
      );
    },
  });
  return { kind: 'layers', layers: layerViews(parameters, sizes), descent };
}

/** Returns uniform weights (Glorot and Bengio 2010), or zeros without hidden layers, because the loss is then convex. */
function initialParameters(sizes: Sizes, seed: number): Float64Array {
  const parameters = new Float64Array(countOf(sizes));
  if (sizes.length === 2) return parameters;
  const { next } = randomStream(seed);
  for (const [l, { weights }] of layerViews(parameters, sizes).entries()) {
    const most = Math.sqrt(6 / (sizes[l] + sizes[l + 1]));
    for (let at = 0; at < weights.length; at++) weights[at] = most * (2 * next() - 1);
  }
  return parameters;
}

export interface ClassifyInputs extends AnalysisInputs {
  labels: Labels;
  /** Default: the simplest of those whose cross entropy is within one standard error of the least. */
  classifier?: ClassifierName;
  /** Unit of the folds: squares of ground, or single pixels. */
  split?: SplitKind;
  /** Draws the folds, and the initial weights of networks. */
  seed?: number;
  /** Passes over the labelled pixels when a network is trained. */
  epochs?: number;
  /** Default: `full`. */
  precision?: Precision;
}

/** JSON Schemas of the inputs of `classify`. */
export const CLASSIFY_PROPERTIES = {
  labels: LABELS,
  classifier: {
    enum: CLASSIFIERS,
    description:
      'Default: the simplest of lda, logistic and mlp whose cross entropy is within one standard error of the least',
  },
  epochs: integer(1, 1000, {
    description: 'Passes of a network (cnn1d, resnet3d) over the labelled pixels; default: 30, 12',
  }),
  precision: {
    enum: PRECISIONS,
    default: 'full',
    description: 'mixed stores spectra in float16 and halves the bytes of exchanged gradients',
  },
  seed: { ...SEED, description: 'Draws the folds, and the initial weights of networks' },
  split: {
    enum: ['place', 'random'],
    default: 'place',
    description:
      'Score squares of 32 x 32 pixels of ground that did not train, or random pixels. The latter overestimates the accuracy, because neighbouring pixels are similar',
  },
};

/** Returns the requested classifier if an engine trains it. */
export function requestedNetwork({ classifier }: ClassifyInputs): NetName | undefined {
  return classifier !== undefined && isNet(classifier) ? classifier : undefined;
}

/** Labelled pixels and the codes of their classes, ascending. */
export interface LabelledFitting extends Fitting {
  codes: number[];
  folds: Folds & { side: number; counts: SquareCounts };
}

/**
 * Reads the labelled pixels and passes them to `work`. Throws TW_ANALYSIS_FEW_LABELS, and TW_QUERY_NO_COLLECTION if the collection of
 * labels does not exist.
 */
export async function withTrainingData<T>(
  analysed: AlikeCollection,
  inputs: ClassifyInputs,
  split: SplitKind,
  work: (fitting: LabelledFitting) => Promise<T>,
): Promise<T> {
  const { labels, seed = DEFAULT_SEED, precision = 'full' } = inputs;
  analysed.job.message('reading labelled pixels');
  if (labels.collection !== undefined)
    await requireCollections(analysed.context.storage, { collections: labels.collection });
  const counts = await squareCounts(analysed, labels);
  const labelled = new Map<number, number>();
  for (const by of counts.values())
    for (const [code, pixels] of by) labelled.set(code, (labelled.get(code) ?? 0) + pixels);
  const codes = [...labelled.keys()].sort((a, b) => a - b);
  requireClasses(codes, analysed);
  const folds = drawFolds(counts, { pixel: analysed.pixel, split, seed });
  const sums = await labelledSums(analysed, labels, folds);
  requireScores(sums, folds, codes);
  const of = { labels, folds, codes, standard: standardOf(sums), labelled, precision };
  const data = await gatherTrainingData(analysed, of);
  const fitting = { analysed, data, sums, folds, seed, known: new Map(), codes };
  const name = requestedNetwork(inputs);
  if (!name) return work(fitting);
  const session = await NetSession.open(analysed, { name, ...of });
  try {
    return await work({ ...fitting, nets: { session, epochs: inputs.epochs ?? NET_SETTINGS[name].epochs } });
  } finally {
    session.close();
  }
}

function requireClasses(codes: readonly number[], { counts }: AnalysedCollection): void {
  if (codes.length >= 2) return;
  // Unreadable tiles may be the reason that there are no labels.
  const [first] = counts.failed;
  const why = first ? ` (${counts.failures} failed: ${first.message})` : '';
  throw fewLabels(
    `${codes.length} classes have labelled pixels in the tiles${why}`,
    'label pixels of other classes, or choose a larger area',
  );
}

/** Classes with fewer training pixels cannot be scored. */
const MIN_TRAINING_PIXELS = 2;

/** Codes of the classes that a training can distinguish, and that the fold it leaves out can score; none if it has a single class. */
function trainedCodes(sums: LabelledSums, training: number): Set<number> {
  try {
    const classes = sums(training).classes.filter(({ pixels }) => pixels >= MIN_TRAINING_PIXELS);
    return new Set(classes.length < 2 ? [] : classes.map(({ code }) => code));
  } catch (error) {
    if (!tooFewPixels.is(error)) throw error;
    return new Set();
  }
}

/** Codes of the classes whose pixels in a fold are scored. Collections with few labelled squares have fewer folds. */
export function scoredCodes({ sums, folds }: Fitting, fold: number): Set<number> {
  const isUsed = folds.split === 'random' || [...folds.squares.values()].some((one) => one.fold === fold);
  return isUsed ? trainedCodes(sums, fold) : new Set();
}

/** Throws TW_ANALYSIS_FEW_LABELS if no labelled pixel can be scored by a classifier that other ground has trained. */
function requireScores(sums: LabelledSums, folds: LabelledFitting['folds'], codes: readonly number[]): void {
  const trained = Array.from({ length: FOLDS }, (_, fold) => trainedCodes(sums, fold));
  const scored = codes.filter((code) =>
    folds.split === 'random'
      ? trained.some((codes) => codes.has(code))
      : [...folds.counts].some(
          ([key, by]) => by.has(code) && trained[folds.squares.get(key)!.fold].has(code),
        ),
  );
  if (scored.length >= 2) return;
  const where = `${folds.counts.size} squares of ${folds.side} x ${folds.side} pixels`;
  throw fewLabels(
    `the labels lie in ${where}, and ${scored.length} classes have pixels in two of them that are ${GAP_PX} pixels apart`,
    'label each class in more places, or score random pixels (--split random), which overestimates the accuracy',
  );
}

/** Mean and standard deviation of the labelled pixels. A constant band is only centred. */
function standardOf(sums: LabelledSums): Standardisation {
  const { mean, covariance } = sums(ALL);
  const deviation = mean.map((_, band) => Math.sqrt(covariance[band * (mean.length + 1)]) || 1);
  return { centre: mean, deviation };
}

/** Returns the same tiles with the bands in order of wavelength. */
export function sortedByWavelength(analysed: AlikeCollection): AlikeCollection {
  const { bands } = analysed;
  const order = [...bands.keys()].sort((a, b) => bands[a].wavelength - bands[b].wavelength || a - b);
  return { ...analysed, ...selectBands(analysed, order) };
}
