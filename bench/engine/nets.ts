/** The networks of the benchmark of engines. torch_step.py has the same layers, sizes, losses and optimizer. */
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../src/engines/tfjs.js';
import type { Batch } from '../../src/training/batches.js';
import type { Learner } from '../../src/training/learner.js';
import { ganLearner, regressionLearner } from '../../src/training/learner.js';
import { buildDiscriminator, buildModel } from '../../src/training/models/network.js';
import { cloudRemovalModel } from '../../src/training/models/spa-gan.js';

export const NETS = {
  ndvi: { title: 'NDVI CNN, 16 x 64 x 64 x 3', input: [16, 64, 64, 3], target: [16, 1] },
  unet: { title: 'U-Net, 4 x 128 x 128 x 3', input: [4, 128, 128, 3], target: [4, 128, 128, 1] },
  spagan: { title: 'SpA-GAN, 2 x 128 x 128 x 13', input: [2, 128, 128, 13], target: [2, 128, 128, 3] },
} as const;
export type NetName = keyof typeof NETS;

const SEED = 1;

export function learnerNamed(tf: Tf, name: NetName): Learner {
  if (name !== 'spagan') return regressionLearner(tf, name === 'ndvi' ? cnn(tf) : unet(tf));
  const bands = cloudRemovalModel.inputs.length;
  const generator = buildModel(tf, cloudRemovalModel, SEED);
  return ganLearner(tf, generator, buildDiscriminator(tf, bands, SEED));
}

/** Random values; all pixels count. */
export function batchFor(tf: Tf, name: NetName): Batch {
  const { input, target } = NETS[name];
  const batch: Batch = {
    size: input[0],
    inputs: tf.randomUniform([...input], 0, 1, 'float32', 1),
    targets: tf.randomUniform([...target], 0, 1, 'float32', 2),
  };
  if (name !== 'spagan') return batch;
  const pixels: [number, number, number, number] = [input[0], input[1], input[2], 1];
  return { ...batch, counts: tf.ones(pixels), cloud: tf.randomUniform(pixels, 0, 1, 'float32', 3) };
}

function cnn(tf: Tf): LayersModel {
  const net = tf.sequential();
  net.add(tf.layers.inputLayer({ inputShape: NETS.ndvi.input.slice(1) }));
  for (const filters of [32, 64, 64, 128]) {
    net.add(tf.layers.conv2d({ filters, kernelSize: 3, padding: 'same', activation: 'relu' }));
    net.add(tf.layers.maxPooling2d({ poolSize: 2 }));
  }
  net.add(tf.layers.flatten());
  net.add(tf.layers.dense({ units: 128, activation: 'relu' }));
  net.add(tf.layers.dense({ units: 1 }));
  return net;
}

function unet(tf: Tf): LayersModel {
  const { layers } = tf;
  const conv = (x: SymbolicTensor, filters: number) => {
    const y = layers.conv2d({ filters, kernelSize: 3, padding: 'same' }).apply(x);
    return layers.leakyReLU({ alpha: 0.2 }).apply(layers.batchNormalization().apply(y)) as SymbolicTensor;
  };
  const input = tf.input({ shape: NETS.unet.input.slice(1) });
  const skips: SymbolicTensor[] = [];
  let x = input;
  for (const filters of [32, 64, 128]) {
    const y = conv(x, filters);
    skips.push(y);
    x = layers.maxPooling2d({ poolSize: 2 }).apply(y) as SymbolicTensor;
  }
  x = conv(x, 256);
  for (const filters of [128, 64, 32]) {
    const up = layers.conv2dTranspose({ filters, kernelSize: 2, strides: 2, padding: 'same' }).apply(x);
    x = conv(layers.concatenate().apply([skips.pop()!, up as SymbolicTensor]) as SymbolicTensor, filters);
  }
  const output = layers.conv2d({ filters: 1, kernelSize: 1, activation: 'tanh' }).apply(x);
  return tf.model({ inputs: input, outputs: output as SymbolicTensor });
}
