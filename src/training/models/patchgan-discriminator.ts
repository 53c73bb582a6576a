/**
 * Discriminator that distinguishes true cloud-free images from generated ones while a cloud-removal model is trained (figure 8 of the
 * paper).
 */
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { LayerBuilder } from './model-layer-builder.js';

const FIRST_FILTERS = 32;
const NEXT_FILTERS = [128, 256, 512];

/**
 * PatchGAN (Isola et al. 2017), six convolutions: one of 4x4 with stride 2 for the cloudy image and one for the candidate, three more of
 * 4x4 with batch normalisation for both together, and one of 3x3. Its output are logits, one for each part of the image.
 */
export function buildDiscriminator(tf: Tf, bands: number, seed: number): LayersModel {
  const make = new LayerBuilder(tf, seed);
  const inputs = ['cloudy', 'candidate'].map((name) => tf.input({ shape: [null, null, bands], name }));
  const halves = inputs.map((input) => make.leakyRelu(make.conv(input, FIRST_FILTERS, 4, { strides: 2 })));
  const features = NEXT_FILTERS.reduce<SymbolicTensor>(
    (x, filters) => make.block(x, filters, 4, 2),
    make.concatenate(...halves),
  );
  const logits = make.conv(features, 1, 3, { name: 'output' });
  return tf.model({ inputs, outputs: logits, name: 'discriminator' });
}
