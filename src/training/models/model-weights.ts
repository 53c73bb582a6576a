/** Weights of a model as arrays. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { WeightValues } from './model-serialization.js';

/** Sets all weights, in the order of the model. */
export function setWeights(tf: Tf, model: LayersModel, weights: WeightValues[]): void {
  const tensors: Tensor[] = weights.map(({ values, shape }) => tf.tensor(values, shape, 'float32'));
  model.setWeights(tensors);
  tf.dispose(tensors);
}

/** Returns a copy of all weights, in the order of the model. */
export function readWeights(model: LayersModel): WeightValues[] {
  return model
    .getWeights()
    .map((tensor) => ({ shape: tensor.shape, values: tensor.dataSync<'float32'>().slice() }));
}
