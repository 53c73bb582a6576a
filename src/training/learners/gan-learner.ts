/**
 * Adversarial training as in SpA-GAN (Pan 2020): the generator minimises mean softplus(-D(fake)) + 100 x L1(fake, clear) + MSE(attention,
 * cloud), the discriminator mean softplus(D(fake)) + mean softplus(-D(clear)).
 */
import type { Tensor, Tensor4D } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { Batch } from '../patches/index.js';
import { asVariables, freezeAllExcept, type Learner, trainableLayers } from './learner.js';
import { Adam } from './learner-adam-optimizer.js';
import { lossAndGradients } from './learner-gradients.js';
import { maskedMean } from './regression-learner.js';

const L1_WEIGHT = 100;
const ADAM = { beta1: 0.5, weightDecay: 1e-5 };

export function ganLearner(tf: Tf, generator: LayersModel, discriminator: LayersModel): Learner {
  const layers = trainableLayers(generator);
  let generatorAdam = new Adam(tf, asVariables(generator.trainableWeights), ADAM);
  let discriminatorAdam = new Adam(tf, asVariables(discriminator.trainableWeights), ADAM);
  const discriminate = (batch: Batch, candidate: Tensor) =>
    discriminator.apply([dateOf(tf, batch), candidate as Tensor4D], { training: true }) as Tensor;
  return {
    model: generator,
    async step(batch, options) {
      const { inputs, targets, counts, cloud } = batch;
      let fake: Tensor | undefined;
      const generatorLoss = lossAndGradients(tf, generatorAdam.variables, () => {
        const [made, attention] = generator.apply(inputs, { training: true }) as Tensor[];
        fake = tf.keep(composited(tf, batch, made));
        const adversarial = tf.mean(tf.softplus(tf.neg(discriminate(batch, fake))));
        const distance = maskedMean(tf, tf.abs(tf.sub(made, targets)), counts);
        const attentionLoss = maskedMean(tf, tf.square(tf.sub(attention, cloud!)), counts);
        return tf.add(tf.add(adversarial, tf.mul(distance, L1_WEIGHT)), attentionLoss);
      });
      const loss = await generatorAdam.minimiseStep(generatorLoss, options);
      const real = tf.tidy(() => composited(tf, batch, targets));
      const discriminatorLoss = lossAndGradients(tf, discriminatorAdam.variables, () =>
        tf.add(
          tf.mean(tf.softplus(discriminate(batch, fake!))),
          tf.mean(tf.softplus(tf.neg(discriminate(batch, real)))),
        ),
      );
      await discriminatorAdam.minimiseStep(discriminatorLoss, options);
      tf.dispose([fake!, real]);
      return loss;
    },
    setTrainableLayers(names) {
      generatorAdam.dispose();
      discriminatorAdam.dispose();
      freezeAllExcept(layers, names);
      generatorAdam = new Adam(tf, asVariables(generator.trainableWeights), ADAM);
      discriminatorAdam = new Adam(tf, asVariables(discriminator.trainableWeights), ADAM);
    },
    stateVariables: () => [
      ...asVariables(generator.weights),
      ...asVariables(discriminator.weights),
      ...generatorAdam.moments,
      ...discriminatorAdam.moments,
    ],
    dispose() {
      generatorAdam.dispose();
      discriminatorAdam.dispose();
      discriminator.dispose();
      freezeAllExcept(layers);
    },
  };
}

/** Replaces pixels without a known clear value by those of the date, so that they contain no information for the discriminator. */
function composited(tf: Tf, batch: Batch, image: Tensor): Tensor {
  const counts = batch.counts!;
  return tf.add(tf.mul(image, counts), tf.mul(dateOf(tf, batch), tf.sub(1, counts)));
}

/** Returns the bands of the date with its clouds replaced, without the other planes. */
function dateOf(tf: Tf, { inputs, targets }: Batch): Tensor4D {
  return tf.slice(inputs, [0, 0, 0, 0], targets.shape as Tensor4D['shape']);
}
