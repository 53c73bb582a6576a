/** Batch normalisation of a model that comes from another place. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { randomStream, shuffledOrder } from '../../random.js';
import { inferenceBatchSize } from '../inference/index.js';
import { inferenceBatches, type Patches, selectPatches } from '../patches/index.js';

/**
 * Replaces the averages of all batch normalisations by those of these patches (AdaBN, Li et al. 2016, "Revisiting batch
 * normalization for practical domain adaptation"): by averages of other land a model says little of this one. They are the means over
 * shuffled batches, as training has them: a batch of neighbours would vary less than the place does.
 */
export function adaptBatchNorm(tf: Tf, model: LayersModel, patches: Patches): void {
  // The types of the library do not have what its class has.
  const norms = model.layers.filter((layer) => layer.getClassName() === 'BatchNormalization') as unknown as {
    momentum: number;
  }[];
  if (norms.length === 0) return;
  const momenta = norms.map(({ momentum }) => momentum);
  const shuffled = selectPatches(patches, [...shuffledOrder(patches.count, randomStream(0).next)]);
  try {
    for (const { from, tensor } of inferenceBatches(tf, shuffled, inferenceBatchSize(patches))) {
      // The mean over all batches so far.
      for (const norm of norms) norm.momentum = from / (from + tensor.shape[0]);
      tf.tidy(() => {
        model.apply(tensor, { training: true });
      });
      tensor.dispose();
    }
  } finally {
    norms.forEach((norm, i) => {
      norm.momentum = momenta[i];
    });
  }
}
