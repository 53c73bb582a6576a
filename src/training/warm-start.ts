/** Start of a training: a fresh model, or the model of another cell, whose batch normalisation and output layers adapt to this cell. */

import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import type { ModelFileLocation } from '../storage/index.js';
import { randomStream, shuffledOrder } from '../utils/random.js';
import { inferenceBatches, inferenceBatchSize, predictPatches } from './batches.js';
import { initialFitStatistics, meanSquaredError } from './evaluation.js';
import { LINEAR_LAYER, RESIDUAL_LAYER, setLinearWeights } from './models/network.js';
import { parseWeights, setWeights, type WeightValues } from './models/weights.js';
import { type Patches, selectPatches, subsamplePatches, type TrainValidationPatches } from './patches.js';
import { type LinearModel, ridge } from './ridge-regression.js';

/**
 * Replaces the moving averages of all batch normalisations by those of these patches (AdaBN, Li et al. 2016, "Revisiting batch
 * normalization for practical domain adaptation"): with averages of other land, the model predicts poorly here. They are means over
 * shuffled batches, as in training; a batch of neighbouring patches would vary less than the cell.
 */
function adaptBatchNorm(tf: Tf, model: LayersModel, patches: Patches): void {
  // The types of the library omit `momentum`.
  const norms = model.layers.filter((layer) => layer.getClassName() === 'BatchNormalization') as unknown as {
    momentum: number;
  }[];
  if (norms.length === 0) return;
  const momenta = norms.map(({ momentum }) => momentum);
  const shuffled = selectPatches(patches, [...shuffledOrder(patches.count, randomStream(0).next)]);
  try {
    for (const { from, tensor } of inferenceBatches(tf, shuffled, inferenceBatchSize(patches))) {
      // This momentum makes the moving average the mean over all batches so far.
      for (const norm of norms) norm.momentum = from / (from + tensor.shape[0]);
      tf.tidy(() => {
        model.apply(tensor, { training: true });
      });
      tensor.dispose();
    }
  } finally {
    norms.forEach((norm, i) => {
      norm.momentum = momenta[i];
    });
  }
}

/** Refits the linear layer of a model to the residuals of its other layers. */
function refitLinearLayer(tf: Tf, model: LayersModel, patches: Patches): void {
  const { kernel, bias } = valuesOf(model, LINEAR_LAYER);
  setLinearWeights(
    tf,
    model,
    LINEAR_LAYER,
    Array(kernel.length).fill(Array(bias.length).fill(0)),
    bias.fill(0),
  );
  const targets = residuals(tf, model, patches);
  addToLayer(tf, model, LINEAR_LAYER, ridge(initialFitStatistics({ ...patches, targets })));
}

/**
 * Moves the output layers of a model from another cell towards the fit to the patches: the linear layer, and for maps also the
 * residual layer, both in one fit. It is a ridge regression of the residuals whose penalty is on the distance from the old weights.
 * The old weights count as much as one sample of each patch, because the pixels of a patch are similar. So the model is adapted to
 * the illumination of this cell before it is trained, and keeps what it learned about colours that are rare in the patches. A model
 * for means has too few samples for its many features; the residual layer of a cloud-removal model has 3x3 kernels.
 */
function refitOutputLayers(tf: Tf, model: LayersModel, patches: Patches): void {
  const targets = residuals(tf, model, patches);
  const fitsResidual = patches.targetMask && !patches.cloud;
  const { inputs, inputBands } = fitsResidual ? withFeatures(tf, model, patches) : patches;
  const { weights, bias } = ridge(
    initialFitStatistics({ ...patches, inputs, inputBands, targets }),
    patches.count,
  );
  const bands = patches.inputBands;
  addToLayer(tf, model, LINEAR_LAYER, { weights: weights.map((row) => row.slice(0, bands)), bias });
  if (fitsResidual)
    addToLayer(tf, model, RESIDUAL_LAYER, { weights: weights.map((row) => row.slice(bands)), bias: [] });
}

/** Returns targets minus predictions. */
function residuals(tf: Tf, model: LayersModel, patches: Patches): Float32Array {
  const predicted = predictPatches(tf, model, { ...patches, range: undefined });
  return patches.targets.map((target, i) => target - predicted[i]);
}

/** Returns for each pixel the inputs, followed by the features from which the last layer computes the residual. */
function withFeatures(tf: Tf, model: LayersModel, patches: Patches): Pick<Patches, 'inputs' | 'inputBands'> {
  const features = model.getLayer(RESIDUAL_LAYER).input as SymbolicTensor;
  const extractor = tf.model({ inputs: model.inputs, outputs: [model.inputs[0], features] });
  const inputBands = patches.inputBands + features.shape.at(-1)!;
  const inputs = new Float32Array((patches.inputs.length / patches.inputBands) * inputBands);
  for (const { from, tensor } of inferenceBatches(tf, patches, inferenceBatchSize(patches))) {
    const joined = tf.tidy(() => tf.concat(extractor.apply(tensor, { training: false }) as Tensor[], -1));
    inputs.set(joined.dataSync<'float32'>(), from * patches.size ** 2 * inputBands);
    tf.dispose([joined, tensor]);
  }
  return { inputs, inputBands };
}

function addToLayer(
  tf: Tf,
  model: LayersModel,
  name: string,
  { weights, bias: constants }: LinearModel,
): void {
  const { kernel, bias } = valuesOf(model, name);
  const sums = kernel.map((row, input) => row.map((weight, output) => weight + weights[output][input]));
  setLinearWeights(
    tf,
    model,
    name,
    sums,
    bias.map((constant, output) => constant + constants[output]),
  );
}

/** Returns the kernel, [input][output], and the bias of a layer that is linear in each pixel. The bias is empty if the layer has none. */
function valuesOf(model: LayersModel, name: string): { kernel: number[][]; bias: number[] } {
  const [kernel, bias] = model.getLayer(name).getWeights();
  const outputs = kernel.shape.at(-1)!;
  const values = kernel.dataSync<'float32'>();
  return {
    kernel: Array.from({ length: values.length / outputs }, (_, input) => [
      ...values.subarray(input * outputs, (input + 1) * outputs),
    ]),
    bias: bias ? [...bias.dataSync<'float32'>()] : [],
  };
}

/** Files of a model of another cell. */
export interface SourceModelFiles {
  id: string;
  version: string;
  topology: ModelFileLocation;
  weights: ModelFileLocation;
}

/** Models from which a training may start. */
export interface WarmStartOptions {
  /** With `probe` the best is used, otherwise the first that matches. */
  parents: SourceModelFiles[];
  /** Compares the models with each other and with a fresh one, on some of the training patches. */
  probe: boolean;
}

export interface WarmStartResult {
  /** Absent if it started fresh. */
  parent?: { id: string; version: string };
  /** The compared models with their mean squared errors; the fresh model has no id. */
  probed?: { id?: string; mse: number }[];
  /** Models that could not be used, with the reasons. */
  refused?: { id: string; reason: string }[];
}

/** Number of pixels on which models are compared: enough to distinguish them, and a small part of an epoch. */
const PROBE_PIXELS = 2 ** 14;
/** Minimum number of patches, because the pixels of one patch are similar. */
const MIN_PROBED_PATCHES = 16;
/** Number of pixels to which the output layers are adapted. */
const ADAPTATION_PIXELS = 2 ** 16;
const UNREADABLE_WEIGHTS_ERRORS = [SyntaxError, RangeError, TypeError];

/**
 * Copies the weights of a parent into a fresh model, and adapts it to the training patches: first batch normalisation, then the output
 * layers. With `probe`, each parent and the fresh model are adapted to some training patches and compared on some selection patches,
 * which lie on other ground. A parent is refused if its files are damaged or unreadable, if its layers differ, or if its predictions for
 * this cell are not finite; the model is then unchanged.
 */
export async function warmStart(
  tf: Tf,
  model: LayersModel,
  { train, selection }: Pick<TrainValidationPatches, 'train' | 'selection'>,
  { parents, probe }: WarmStartOptions,
): Promise<WarmStartResult> {
  const refused: NonNullable<WarmStartResult['refused']> = [];
  const patchesOf = (pixels: number) => Math.ceil(pixels / train.size ** 2);
  const some = (set: Patches) =>
    subsamplePatches(set, Math.max(MIN_PROBED_PATCHES, patchesOf(PROBE_PIXELS)) / 2);
  const known = some(train);
  const unknown = some(selection ?? train);
  const adapt = (values: WeightValues[], patches: Patches) => {
    setWeights(tf, model, values);
    adaptBatchNorm(tf, model, patches);
    refitOutputLayers(tf, model, subsamplePatches(patches, patchesOf(ADAPTATION_PIXELS)));
  };
  const fresh = model.getWeights().map((tensor) => tensor.clone());
  const probed: NonNullable<WarmStartResult['probed']> = [];
  if (probe) {
    refitLinearLayer(tf, model, known);
    probed.push({ mse: meanSquaredError(tf, model, unknown) });
  }
  let best: { parent?: SourceModelFiles; values?: WeightValues[]; mse: number } = {
    mse: probed[0]?.mse ?? Infinity,
  };
  try {
    for (const parent of parents) {
      const { id } = parent;
      const read = await readSourceWeights(parent, model);
      if ('reason' in read) {
        refused.push({ id, reason: read.reason });
        continue;
      }
      adapt(read.values, probe ? known : train);
      const mse = meanSquaredError(tf, model, unknown);
      if (!Number.isFinite(mse)) {
        refused.push({ id, reason: 'its predictions for this place are not finite' });
        continue;
      }
      if (probe) probed.push({ id, mse });
      if (mse < best.mse) best = { parent, ...read, mse };
      if (!probe) break;
    }
    const { parent, values } = best;
    if (!values) model.setWeights(fresh);
    else if (probe) adapt(values, train);
    return {
      ...(parent && { parent: { id: parent.id, version: parent.version } }),
      ...(probed.length > 1 && { probed }),
      ...(refused.length > 0 && { refused }),
    };
  } finally {
    tf.dispose(fresh);
  }
}

/** Reads the weights of a model that another job or cell has trained, or returns the reason why `model` cannot have them. */
export async function readSourceWeights(
  { topology, weights }: SourceModelFiles,
  model: LayersModel,
): Promise<{ values: WeightValues[] } | { reason: string }> {
  try {
    // Imported here, because it would slow down the start of processes whose cells start fresh.
    const { readModelFile } = await import('../storage/index.js');
    const values = parseWeights(await readModelFile(topology), await readModelFile(weights));
    const own = model.weights;
    const fits =
      values.length === own.length && values.every(({ shape }, i) => String(shape) === String(own[i].shape));
    if (!fits) return { reason: 'its layers differ' };
    if (!values.every(({ values }) => values.every(Number.isFinite)))
      return { reason: 'a weight is not finite' };
    return { values };
  } catch (error) {
    if (error instanceof TilewrightError) return { reason: error.message };
    // Errors of `parseWeights` for files that are not the files of a model.
    if (!UNREADABLE_WEIGHTS_ERRORS.some((kind) => error instanceof kind)) throw error;
    return { reason: `its files are not those of a model: ${messageOf(error)}` };
  }
}
