/** Adapts the batch normalisation of a model from another cell. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { randomStream, shuffledOrder } from '../../utils/random.js';
import { inferenceBatchSize } from '../inference/index.js';
import { inferenceBatches, type Patches, selectPatches } from '../patches/index.js';

/**
 * Replaces the moving averages of all batch normalisations by those of these patches (AdaBN, Li et al. 2016, "Revisiting batch
 * normalization for practical domain adaptation"): with averages of other land, the model predicts poorly here. They are means over
 * shuffled batches, as in training; a batch of neighbouring patches would vary less than the cell.
 */
export function adaptBatchNorm(tf: Tf, model: LayersModel, patches: Patches): void {
  // The types of the library omit `momentum`.
  const norms = model.layers.filter((layer) => layer.getClassName() === 'BatchNormalization') as unknown as {
    momentum: number;
  }[];
  if (norms.length === 0) return;
  const momenta = norms.map(({ momentum }) => momentum);
  const shuffled = selectPatches(patches, [...shuffledOrder(patches.count, randomStream(0).next)]);
  try {
    for (const { from, tensor } of inferenceBatches(tf, shuffled, inferenceBatchSize(patches))) {
      // This momentum makes the moving average the mean over all batches so far.
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
