/** Trains with the mean squared error over the pixels that count. */
import type { Scalar, Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { Batch } from '../patches/index.js';
import { asVariables, freezeAllExcept, type Learner, trainableLayers } from './learner.js';
import { Adam } from './learner-adam-optimizer.js';
import { BatchGradients } from './learner-gradients.js';

/** Statistics that batch normalisation uses in a step: those of the batch, or the moving averages of the model, which stay as they are. */
export type BatchNormStatistics = 'batch' | 'moving';

export function regressionLearner(
  tf: Tf,
  model: LayersModel,
  statistics: BatchNormStatistics = 'batch',
): Learner {
  const layers = trainableLayers(model);
  const begin = (names?: string[]) => {
    freezeAllExcept(layers, names);
    const adam = new Adam(tf, asVariables(model.trainableWeights));
    const loss = ({ inputs, targets, counts }: Batch) => {
      const squares = tf.square(
        tf.sub(model.apply(inputs, { training: statistics === 'batch' }) as Tensor, targets),
      );
      return maskedMean(tf, squares, counts);
    };
    return { adam, gradients: new BatchGradients(tf, adam.variables, asVariables(model.weights), loss) };
  };
  let { adam, gradients } = begin();
  const end = () => {
    gradients.dispose();
    adam.dispose();
  };
  return {
    model,
    step: (batch, options) => adam.minimiseStep(gradients.of(batch), options),
    setTrainableLayers(names) {
      end();
      ({ adam, gradients } = begin(names));
    },
    stateVariables: () => [...asVariables(model.weights), ...adam.moments],
    dispose() {
      end();
      freezeAllExcept(layers);
    },
  };
}

/** Returns the mean over all channels of the pixels that count. */
export function maskedMean(tf: Tf, values: Tensor, counts?: Tensor): Scalar {
  if (!counts) return tf.mean(values);
  const channels = values.shape.at(-1)!;
  return tf.div(tf.sum(tf.mul(values, counts)), tf.mul(tf.sum(counts), channels));
}
