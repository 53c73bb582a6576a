/** Reads the labelled pixels of a job, and fits classifiers to sets of them. */

import { requireCollections } from '../../query/index.js';
import { randomStream } from '../../utils/random.js';
import {
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
import { type LabelledSums, labelledSums } from '../collection-passes.js';
import type { ScoreSums } from '../dense-training.js';
import { fewLabels } from '../errors.js';
import { type SplitKind, TRAIN, VALIDATION } from '../labelled-pixels.js';
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
 * would be random, because the tuning pixels are few.
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
  sets: readonly number[],
): Promise<FittedClassifier> {
  const key = `${name} ${strength} ${sets}`;
  const fitted = fitting.known.get(key) ?? (await fitNew(fitting, name, strength, sets));
  fitting.known.set(key, fitted);
  return fitted;
}

async function fitNew(
  fitting: Fitting,
  name: ClassifierName,
  strength: number,
  sets: readonly number[],
): Promise<FittedClassifier> {
  if (isNet(name)) {
    const { nets, seed, analysed } = fitting;
    const { session, epochs } = nets!;
    return { kind: 'net', ...(await trainNet(session, { sets, epochs, strength, seed }, analysed.job)) };
  }
  if (name === 'lda') return { kind: 'layers', layers: [discriminantLayer(fitting, strength, sets)] };
  return fitNetwork(fitting, name, strength, sets);
}

/** Scores a classifier on a set, over all runs. */
export async function scoreClassifier(
  { analysed, data, nets }: Fitting,
  fitted: FittedClassifier,
  { set, temperatures = [1] }: { set: number; temperatures?: number[] },
): Promise<ScoreSums> {
  if (fitted.kind === 'layers') return scoresOn(analysed, data, { set, layers: fitted.layers, temperatures });
  return scoresOfRuns(await nets!.session.scores(fitted.weights, set, temperatures), analysed.job);
}

function discriminantLayer({ sums, data }: Fitting, shrinkage: number, sets: readonly number[]): DenseLayer {
  const of = sums.of(sets);
  const { centre, deviation } = data.standard;
  const bands = centre.length;
  const { weights, bias } = discriminant(withinClasses(of, of.classes), of.mean, of.classes, shrinkage);
  return {
    weights: weights.map((value, at) => value * deviation[at % bands]),
    bias: bias.map((value, row) => {
      let sum = value;
      for (let b = 0; b < bands; b++) sum += weights[row * bands + b] * (centre[b] - of.mean[b]);
      return sum;
    }),
  };
}

async function fitNetwork(
  { analysed, data, sums, seed }: Fitting,
  name: 'logistic' | 'mlp',
  penalty: number,
  sets: readonly number[],
): Promise<FittedLayers> {
  const sizes = [data.standard.centre.length, ...HIDDEN_LAYER_SIZES[name], data.classes];
  const descent = { evaluations: 0, bytes: 0 };
  const evaluate = async (parameters: Float64Array) => {
    const { value, gradient, bytes } = await lossOf(analysed, data, { sets, sizes, parameters });
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
  const covariance = sums
    .of(sets)
    .covariance.map((value, at) => value / (deviation[at % bands] * deviation[Math.floor(at / bands)]));
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
  /** Default: the best one on the pixels for tuning. */
  classifier?: ClassifierName;
  /** Unit of the split into training and validation: squares of 32 x 32 pixels, or single pixels. */
  split?: SplitKind;
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
    description: 'Default: the best of lda, logistic and mlp on the tuning pixels',
  },
  epochs: integer(1, 1000, {
    description: 'Passes of a network (cnn1d, resnet3d) over the labelled pixels; default: 30, 12',
  }),
  precision: {
    enum: PRECISIONS,
    default: 'full',
    description: 'mixed stores spectra in float16 and halves the bytes of exchanged gradients',
  },
  seed: SEED,
  split: {
    enum: ['place', 'random'],
    default: 'place',
    description:
      'Validate on squares of 32 x 32 pixels that did not train, or on random pixels. The latter overestimates the accuracy, because neighbouring pixels are similar',
  },
};

/** Returns the requested classifier if an engine trains it. */
export function requestedNetwork({ classifier }: ClassifyInputs): NetName | undefined {
  return classifier !== undefined && isNet(classifier) ? classifier : undefined;
}

/** Labelled pixels and the codes of their classes, ascending. */
export interface LabelledFitting extends Fitting {
  codes: number[];
}

/**
 * Reads the labelled pixels and passes them to `work`. Throws TW_ANALYSIS_FEW_LABELS, and TW_QUERY_NO_COLLECTION if the collection of
 * labels does not exist.
 */
export async function withTrainingData<T>(
  analysed: AnalysedCollection,
  inputs: ClassifyInputs,
  split: SplitKind,
  work: (fitting: LabelledFitting) => Promise<T>,
): Promise<T> {
  const { labels, seed = DEFAULT_SEED, precision = 'full' } = inputs;
  analysed.job.message('reading labelled pixels');
  if (labels.collection !== undefined)
    await requireCollections(analysed.context.storage, { collections: labels.collection });
  const sums = await labelledSums(analysed, labels, split);
  const codes = codesOf(sums, analysed);
  const pixelsOf = (code: number) => sums.counts.reduce((sum, set) => sum + (set.get(code) ?? 0), 0);
  const labelled = new Map(codes.map((code) => [code, pixelsOf(code)]));
  const of = { labels, split, codes, standard: standardOf(sums), labelled, precision };
  const data = await gatherTrainingData(analysed, of);
  const fitting = { analysed, data, sums, seed, known: new Map(), codes };
  const name = requestedNetwork(inputs);
  if (!name) return work(fitting);
  const session = await NetSession.open(analysed, { name, ...of });
  try {
    return await work({ ...fitting, nets: { session, epochs: inputs.epochs ?? NET_SETTINGS[name].epochs } });
  } finally {
    session.close();
  }
}

/** Throws TW_ANALYSIS_FEW_LABELS if the labels do not suffice for a split. */
export async function checkSplit(
  analysed: AnalysedCollection,
  { labels }: ClassifyInputs,
  split: SplitKind,
): Promise<void> {
  codesOf(await labelledSums(analysed, labels, split), analysed);
}

function codesOf({ counts }: LabelledSums, analysed: AnalysedCollection): number[] {
  const codes = [...new Set(counts.flatMap((set) => [...set.keys()]))].sort((a, b) => a - b);
  if (codes.length < 2) {
    // Unreadable tiles may be the reason that there are no labels.
    const [first] = analysed.counts.failed;
    const why = first ? ` (${analysed.counts.failures} failed: ${first.message})` : '';
    throw fewLabels(`${codes.length} classes have labelled pixels in the tiles${why}`);
  }
  const absent = codes.filter((code) => (counts[TRAIN].get(code) ?? 0) < 2);
  if (absent.length > 0)
    throw fewLabels(`class ${absent.join(', ')} has less than 2 pixels in the squares that train`);
  if (counts[VALIDATION].size === 0) throw fewLabels('no labelled pixel is in the squares for validation');
  return codes;
}

/** Mean and standard deviation of the training pixels. A constant band is only centred. */
function standardOf(sums: LabelledSums): Standardisation {
  const { mean, covariance } = sums.of([TRAIN]);
  const deviation = mean.map((_, band) => Math.sqrt(covariance[band * (mean.length + 1)]) || 1);
  return { centre: mean, deviation };
}

/** Returns the same tiles with the bands in order of wavelength. */
export function sortedByWavelength(analysed: AnalysedCollection): AnalysedCollection {
  const { bands } = analysed;
  return selectBands(
    analysed,
    [...bands.keys()].sort((a, b) => bands[a].wavelength - bands[b].wavelength || a - b),
  );
}
