/** Fits a classifier to sets of labelled pixels. */
import { randomStream } from '../../utils/random.js';
import type { LabelledSums } from '../collection-passes/index.js';
import { preconditioner, type ScoreSums } from '../dense-network-training/index.js';
import type { AnalysedCollection } from '../jobs/index.js';
import { minimiseLbfgs } from '../numeric/index.js';
import { countOf, type DenseLayer, layerViews, type Sizes } from '../pixel-methods/index.js';
import { isNet, NETS, type NetSession, type TrainedNet, trainNet } from '../spectral-cnn/index.js';
import { discriminant, withinClasses } from '../transforms/index.js';
import { lossOf, scoresOfRuns, scoresOn, type TrainingData } from './classification-dataset.js';

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
  cnn2d: [1e-3],
  resnet3d: [1e-3],
};

const HIDDEN_LAYER_SIZES = { logistic: [], mlp: [64, 32] };
const ITERATIONS = { logistic: 100, mlp: 120 };

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
  const parameters = await minimiseLbfgs(start(sizes, seed), evaluate, {
    iterations: ITERATIONS[name],
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
function start(sizes: Sizes, seed: number): Float64Array {
  const parameters = new Float64Array(countOf(sizes));
  if (sizes.length === 2) return parameters;
  const { next } = randomStream(seed);
  for (const [l, { weights }] of layerViews(parameters, sizes).entries()) {
    const most = Math.sqrt(6 / (sizes[l] + sizes[l + 1]));
    for (let at = 0; at < weights.length; at++) weights[at] = most * (2 * next() - 1);
  }
  return parameters;
}
