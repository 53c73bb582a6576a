/** Batch normalisation of a model that comes from another place. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { inputBatches } from '../batch.js';
import type { Tf } from '../engine/tf.js';
import { type PatchSet, spreadParts } from '../patches.js';

/** Pixels of patches that go through the model at once, as in training. */
const BATCH_PIXELS = 2 ** 15;

/**
 * Replaces the averages of all batch normalisations by those of these patches (AdaBN, Li et al. 2016, "Revisiting batch
 * normalization for practical domain adaptation"): by averages of other land a model says little of this one. They are the means over batches, each
 * from all over the place, as neighbours have less variance than training meets.
 */
export function adaptNorms(tf: Tf, model: LayersModel, patches: PatchSet): void {
  // The types of the library do not have what its class has.
  const norms = model.layers.filter((layer) => layer.getClassName() === 'BatchNormalization') as unknown as {
    momentum: number;
  }[];
  if (norms.length === 0) return;
  const momenta = norms.map(({ momentum }) => momentum);
  const parts = spreadParts(patches, Math.ceil((patches.count * patches.size ** 2) / BATCH_PIXELS));
  let seen = 0;
  for (const part of parts) {
    for (const norm of norms) norm.momentum = seen / (seen + part.count);
    seen += part.count;
    for (const { tensor } of inputBatches(tf, part, part.count)) {
      tf.tidy(() => {
        model.apply(tensor, { training: true });
      });
      tensor.dispose();
    }
  }
  norms.forEach((norm, i) => {
    norm.momentum = momenta[i];
  });
}
