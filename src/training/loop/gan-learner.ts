/**
 * Training against a discriminator, as SpA-GAN is (Pan 2020): the generator minimises
 * mean softplus(-D(fake)) + 100 x L1(fake, clear) + MSE(attention, cloud), the discriminator
 * mean softplus(D(fake)) + mean softplus(-D(clear)).
 */
import type { Tensor, Tensor4D } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { Adam } from './adam.js';
import { gradientsOf } from './gradients.js';
import { type Batch, hold, type Learner, trainedLayers, variablesOf } from './learner.js';
import { meanOfCounting } from './regression-learner.js';

const L1_WEIGHT = 100;
const ADAM = { beta1: 0.5, weightDecay: 1e-5 };

export function adversarialLearner(tf: Tf, generator: LayersModel, discriminator: LayersModel): Learner {
  const layers = trainedLayers(generator);
  let ofGenerator = new Adam(tf, variablesOf(generator.trainableWeights), ADAM);
  let ofDiscriminator = new Adam(tf, variablesOf(discriminator.trainableWeights), ADAM);
  const judge = (batch: Batch, candidate: Tensor) =>
    discriminator.apply([dateOf(tf, batch), candidate as Tensor4D], { training: true }) as Tensor;
  return {
    model: generator,
    async step(batch, options) {
      const { inputs, targets, counts, cloud } = batch;
      let fake: Tensor | undefined;
      const ofFake = gradientsOf(tf, ofGenerator.variables, () => {
        const [made, attention] = generator.apply(inputs, { training: true }) as Tensor[];
        fake = tf.keep(shown(tf, batch, made));
        const adversarial = tf.mean(tf.softplus(tf.neg(judge(batch, fake))));
        const distance = meanOfCounting(tf, tf.abs(tf.sub(made, targets)), counts);
        const seen = meanOfCounting(tf, tf.square(tf.sub(attention, cloud!)), counts);
        return tf.add(tf.add(adversarial, tf.mul(distance, L1_WEIGHT)), seen);
      });
      const loss = await ofGenerator.descend(ofFake, options);
      const real = tf.tidy(() => shown(tf, batch, targets));
      const ofBoth = gradientsOf(tf, ofDiscriminator.variables, () =>
        tf.add(tf.mean(tf.softplus(judge(batch, fake!))), tf.mean(tf.softplus(tf.neg(judge(batch, real))))),
      );
      await ofDiscriminator.descend(ofBoth, options);
      tf.dispose([fake!, real]);
      return loss;
    },
    learn(names) {
      ofGenerator.dispose();
      ofDiscriminator.dispose();
      hold(layers, names);
      ofGenerator = new Adam(tf, variablesOf(generator.trainableWeights), ADAM);
      ofDiscriminator = new Adam(tf, variablesOf(discriminator.trainableWeights), ADAM);
    },
    state: () => [
      ...variablesOf(generator.weights),
      ...variablesOf(discriminator.weights),
      ...ofGenerator.moments,
      ...ofDiscriminator.moments,
    ],
    dispose() {
      ofGenerator.dispose();
      ofDiscriminator.dispose();
      discriminator.dispose();
      hold(layers);
    },
  };
}

/** The image with the date's own pixels where the clear ones are not known, so that these tell the discriminator nothing. */
function shown(tf: Tf, batch: Batch, image: Tensor): Tensor {
  const counts = batch.counts!;
  return tf.add(tf.mul(image, counts), tf.mul(dateOf(tf, batch), tf.sub(1, counts)));
}

/** The bands of the date with its clouds replaced, without the other planes. */
function dateOf(tf: Tf, { inputs, targets }: Batch): Tensor4D {
  return tf.slice(inputs, [0, 0, 0, 0], targets.shape as Tensor4D['shape']);
}
