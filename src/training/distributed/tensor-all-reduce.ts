/** Means over all ranks: of tensors, and of the statistics of batch normalisation. */
import type { Tensor, Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { asVariables } from '../learners/index.js';
import { allReduceWeightedMean, type ProcessGroup } from './ring-all-reduce.js';

/** Returns the weighted mean of tensors over all ranks, in one exchange. */
export async function allReduceTensorMean(
  tf: Tf,
  ring: ProcessGroup,
  tensors: Tensor[],
  weight: number,
): Promise<Tensor[]> {
  const flat = new Float32Array(tensors.reduce((sum, { size }) => sum + size, 0));
  let to = 0;
  for (const tensor of tensors) {
    flat.set(await tensor.data<'float32'>(), to);
    to += tensor.size;
  }
  const mean = await allReduceWeightedMean(ring, flat, weight);
  let from = 0;
  return tensors.map(({ shape, size }) => {
    from += size;
    return tf.tensor(mean.slice(from - size, from), shape);
  });
}

/** Moving averages of a batch normalisation layer, which inference uses. */
interface RunningStatistics {
  mean: Variable;
  variance: Variable;
}

export function runningStatistics(model: LayersModel): RunningStatistics[] {
  return model.layers
    .filter((layer) => layer.getClassName() === 'BatchNormalization')
    .map((layer) => {
      const [mean, variance] = asVariables(layer.nonTrainableWeights);
      return { mean, variance };
    });
}

/**
 * Replaces the moments by those of the values of all ranks together: the variance is the mean of the variances plus the mean of the
 * squared distances of the means from their mean (law of total variance).
 */
export async function allReduceRunningStatistics(
  tf: Tf,
  ring: ProcessGroup,
  moments: readonly RunningStatistics[],
  weight: number,
): Promise<void> {
  if (moments.length === 0 || ring.size === 1) return;
  const means = moments.map(({ mean }) => mean);
  const pooled = await allReduceTensorMean(tf, ring, means, weight);
  const spreads = moments.map(({ mean, variance }, i) =>
    tf.tidy(() => tf.add(variance, tf.squaredDifference(mean, pooled[i]))),
  );
  const variances = await allReduceTensorMean(tf, ring, spreads, weight);
  moments.forEach(({ mean, variance }, i) => {
    mean.assign(pooled[i]);
    variance.assign(variances[i]);
  });
  tf.dispose([...pooled, ...spreads, ...variances]);
}
