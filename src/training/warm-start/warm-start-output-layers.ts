/** Fits the output layers of a model to a cell in closed form. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { initialFitStatistics } from '../evaluation/index.js';
import { inferenceBatchSize, predictPatches } from '../inference/index.js';
import { LINEAR_LAYER, RESIDUAL_LAYER, setLinearWeights } from '../models/index.js';
import { inferenceBatches, type Patches } from '../patches/index.js';
import { type LinearModel, ridge } from '../ridge-regression.js';

/** Refits the linear layer of a model to the residuals of its other layers. */
export function refitLinearLayer(tf: Tf, model: LayersModel, patches: Patches): void {
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
export function refitOutputLayers(tf: Tf, model: LayersModel, patches: Patches): void {
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
  const predicted = predictPatches(tf, model, patches);
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
