/** Batch normalisation of a model that comes from another place. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { inputBatches } from '../batch.js';
import type { Tf } from '../engine/tf.js';
import type { PatchSet } from '../patches.js';

/**
 * Replaces the averages of all batch normalisations by those of these patches, as one batch (AdaBN, Li et al. 2016, "Revisiting batch
 * normalization for practical domain adaptation"): by averages of other land a model says little of this one.
 */
export function adaptNorms(tf: Tf, model: LayersModel, patches: PatchSet): void {
  // The types of the library do not have what its class has.
  const norms = model.layers.filter((layer) => layer.getClassName() === 'BatchNormalization') as unknown as {
    momentum: number;
  }[];
  if (norms.length === 0) return;
  const momenta = norms.map(({ momentum }) => momentum);
  for (const norm of norms) norm.momentum = 0;
  for (const { tensor } of inputBatches(tf, patches, patches.count)) {
    tf.tidy(() => {
      model.apply(tensor, { training: true });
    });
    tensor.dispose();
  }
  norms.forEach((norm, i) => {
    norm.momentum = momenta[i];
  });
}
