/** The layers that make the output of a model, fitted to a place in closed form. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { type LinearFit, ridge, startSums } from '../evaluation/baselines.js';
import { patchesAtOnce, predict } from '../inference/predict-patches.js';
import { CHANGE, LINE, setLayer } from '../models/build-model.js';
import { inputBatches } from '../patches/batches.js';
import type { PatchSet } from '../patches/patches.js';

/** Fits the line of a model anew to what all else of it leaves of the targets. */
export function fitLine(tf: Tf, model: LayersModel, patches: PatchSet): void {
  const { kernel, bias } = valuesOf(model, LINE);
  setLayer(tf, model, LINE, Array(kernel.length).fill(Array(bias.length).fill(0)), bias.fill(0));
  const left = residuals(tf, model, patches);
  addToLayer(tf, model, LINE, ridge(startSums({ ...patches, targets: left })));
}

/**
 * Moves the output layers of a model that comes from another place towards what fits the patches: the line, and of a model for maps also the
 * layer that is added to it, both at once. What they say already counts as much as one sample of each patch, as the pixels of a patch are
 * much alike (ridge regression of what the model leaves, so its penalty draws towards the old weights). So it has the light of this
 * place before it learns, and still knows colours that few of the patches show. A model for means has too few samples for its many
 * features, and what a model that removes cloud adds is made of 3x3 pixels.
 */
export function shiftOutput(tf: Tf, model: LayersModel, patches: PatchSet): void {
  const left = residuals(tf, model, patches);
  const fitsChange = patches.counts && !patches.cloud;
  const { inputs, inputBands } = fitsChange ? withFeatures(tf, model, patches) : patches;
  const { weights, bias } = ridge(
    startSums({ ...patches, inputs, inputBands, targets: left }),
    patches.count,
  );
  const bands = patches.inputBands;
  addToLayer(tf, model, LINE, { weights: weights.map((row) => row.slice(0, bands)), bias });
  if (fitsChange)
    addToLayer(tf, model, CHANGE, { weights: weights.map((row) => row.slice(bands)), bias: [] });
}

/** What a model leaves of the targets. */
function residuals(tf: Tf, model: LayersModel, patches: PatchSet): Float32Array {
  const predicted = predict(tf, model, patches);
  return patches.targets.map((target, i) => target - predicted[i]);
}

/** The inputs, and after them the features of which the last layer makes what is added to the line; for each pixel. */
function withFeatures(
  tf: Tf,
  model: LayersModel,
  patches: PatchSet,
): Pick<PatchSet, 'inputs' | 'inputBands'> {
  const features = model.getLayer(CHANGE).input as SymbolicTensor;
  const upTo = tf.model({ inputs: model.inputs, outputs: [model.inputs[0], features] });
  const inputBands = patches.inputBands + features.shape.at(-1)!;
  const inputs = new Float32Array((patches.inputs.length / patches.inputBands) * inputBands);
  for (const { from, tensor } of inputBatches(tf, patches, patchesAtOnce(patches))) {
    const joined = tf.tidy(() => tf.concat(upTo.apply(tensor, { training: false }) as Tensor[], -1));
    inputs.set(joined.dataSync<'float32'>(), from * patches.size ** 2 * inputBands);
    tf.dispose([joined, tensor]);
  }
  return { inputs, inputBands };
}

function addToLayer(tf: Tf, model: LayersModel, name: string, { weights, bias: constants }: LinearFit): void {
  const { kernel, bias } = valuesOf(model, name);
  const ofInputs = kernel.map((row, input) => row.map((weight, output) => weight + weights[output][input]));
  setLayer(
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
