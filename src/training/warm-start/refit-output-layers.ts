/** The layers that make the output of a model, fitted to a place in closed form. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { initialFitStatistics } from '../evaluation/index.js';
import { inferenceBatchSize, predictPatches } from '../inference/index.js';
import { LINEAR_LAYER, RESIDUAL_LAYER, setLinearWeights } from '../models/index.js';
import { inferenceBatches, type Patches } from '../patches/index.js';
import { type LinearModel, ridge } from '../ridge-regression.js';

/** Fits the line of a model anew to what all else of it leaves of the targets. */
export function refitLinearLayer(tf: Tf, model: LayersModel, patches: Patches): void {
  const { kernel, bias } = valuesOf(model, LINEAR_LAYER);
  setLinearWeights(
    tf,
    model,
    LINEAR_LAYER,
    Array(kernel.length).fill(Array(bias.length).fill(0)),
    bias.fill(0),
  );
  const left = residuals(tf, model, patches);
  addToLayer(tf, model, LINEAR_LAYER, ridge(initialFitStatistics({ ...patches, targets: left })));
}

/**
 * Moves the output layers of a model that comes from another place towards what fits the patches: the line, and of a model for maps also the
 * layer that is added to it, both at once. What they say already counts as much as one sample of each patch, as the pixels of a patch are
 * much alike (ridge regression of what the model leaves, so its penalty draws towards the old weights). So it has the light of this
 * place before it learns, and still knows colours that few of the patches show. A model for means has too few samples for its many
 * features, and what a model that removes cloud adds is made of 3x3 pixels.
 */
export function refitOutputLayers(tf: Tf, model: LayersModel, patches: Patches): void {
  const left = residuals(tf, model, patches);
  const fitsChange = patches.targetMask && !patches.cloud;
  const { inputs, inputBands } = fitsChange ? withFeatures(tf, model, patches) : patches;
  const { weights, bias } = ridge(
    initialFitStatistics({ ...patches, inputs, inputBands, targets: left }),
    patches.count,
  );
  const bands = patches.inputBands;
  addToLayer(tf, model, LINEAR_LAYER, { weights: weights.map((row) => row.slice(0, bands)), bias });
  if (fitsChange)
    addToLayer(tf, model, RESIDUAL_LAYER, { weights: weights.map((row) => row.slice(bands)), bias: [] });
}

/** What a model leaves of the targets. */
function residuals(tf: Tf, model: LayersModel, patches: Patches): Float32Array {
  const predicted = predictPatches(tf, model, patches);
  return patches.targets.map((target, i) => target - predicted[i]);
}

/** The inputs, and after them the features of which the last layer makes what is added to the line; for each pixel. */
function withFeatures(tf: Tf, model: LayersModel, patches: Patches): Pick<Patches, 'inputs' | 'inputBands'> {
  const features = model.getLayer(RESIDUAL_LAYER).input as SymbolicTensor;
  const upTo = tf.model({ inputs: model.inputs, outputs: [model.inputs[0], features] });
  const inputBands = patches.inputBands + features.shape.at(-1)!;
  const inputs = new Float32Array((patches.inputs.length / patches.inputBands) * inputBands);
  for (const { from, tensor } of inferenceBatches(tf, patches, inferenceBatchSize(patches))) {
    const joined = tf.tidy(() => tf.concat(upTo.apply(tensor, { training: false }) as Tensor[], -1));
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
  const ofInputs = kernel.map((row, input) => row.map((weight, output) => weight + weights[output][input]));
  setLinearWeights(
    tf,
    model,
    name,
    ofInputs,
    bias.map((constant, output) => constant + constants[output]),
  );
}

/** The kernel of a layer that is linear in each pixel, [input][output], and its bias, without items where it has none. */
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
