/** Training by the mean squared error over the pixels that count. */
import type { Scalar, Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { Adam } from './adam.js';
import { BatchGradients } from './gradients.js';
import { type Batch, hold, type Learner, trainedLayers, variablesOf } from './learner.js';

export function regressionLearner(tf: Tf, model: LayersModel): Learner {
  const layers = trainedLayers(model);
  const begin = (names?: string[]) => {
    hold(layers, names);
    const adam = new Adam(tf, variablesOf(model.trainableWeights));
    const loss = ({ inputs, targets, counts }: Batch) => {
      const squares = tf.square(tf.sub(model.apply(inputs, { training: true }) as Tensor, targets));
      return meanOfCounting(tf, squares, counts);
    };
    return { adam, gradients: new BatchGradients(tf, adam.variables, variablesOf(model.weights), loss) };
  };
  let { adam, gradients } = begin();
  const end = () => {
    gradients.dispose();
    adam.dispose();
  };
  return {
    model,
    step: (batch, options) => adam.descend(gradients.of(batch), options),
    learn(names) {
      end();
      ({ adam, gradients } = begin(names));
    },
    state: () => [...variablesOf(model.weights), ...adam.moments],
    dispose() {
      end();
      hold(layers);
    },
  };
}

/** Mean over all channels of the pixels that count. */
export function meanOfCounting(tf: Tf, values: Tensor, counts?: Tensor): Scalar {
  if (!counts) return tf.mean(values);
  const channels = values.shape.at(-1)!;
  return tf.div(tf.sum(tf.mul(values, counts)), tf.mul(tf.sum(counts), channels));
}
