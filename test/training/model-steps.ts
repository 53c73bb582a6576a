/** Training steps of each model on random patches. */

import type { Tf } from '../../src/engines/tfjs.js';
import type { Batch } from '../../src/training/batches.js';
import type { Learner } from '../../src/training/learner.js';
import { ganLearner, regressionLearner } from '../../src/training/learner.js';
import { buildDiscriminator, buildModel } from '../../src/training/models/network.js';
import { inputPlanes, type ModelSpec } from '../../src/training/models/spec.js';

/** Returns a new model of a kind with its optimiser and loss, and a batch of two patches. */
export function freshLearner(tf: Tf, spec: ModelSpec): { learner: Learner; batch: Batch } {
  const outputs = spec.target.kind === 'clear' ? spec.inputs.length : 1;
  const row = Array.from({ length: inputPlanes(spec) }, (_, plane) => 1 - (plane % 3));
  const line = { weights: Array(outputs).fill(row), bias: Array(outputs).fill(0.1) };
  const model = buildModel(tf, spec, 1, line);
  const learner =
    spec.loss === 'adversarial'
      ? ganLearner(tf, model, buildDiscriminator(tf, spec.inputs.length, 1))
      : regressionLearner(tf, model);
  const pixels: [number, number, number] = [2, spec.patchSize, spec.patchSize];
  const batch: Batch = {
    size: 2,
    inputs: tf.randomUniform([...pixels, inputPlanes(spec)], 0, 1, 'float32', 1),
    targets: tf.randomUniform([2, ...targetShape(spec)], 0, 1, 'float32', 2),
    counts: tf.ones([...pixels, 1]),
    cloud: tf.randomUniform([...pixels, 1], 0, 1, 'float32', 3),
  };
  if (spec.target.kind === 'mean') delete batch.counts;
  return { learner, batch };
}

/** Shape of the target of one patch. */
function targetShape({ target, inputs, patchSize }: ModelSpec): number[] {
  if (target.kind === 'mean') return [1];
  return [patchSize, patchSize, target.kind === 'map' ? 1 : inputs.length];
}
