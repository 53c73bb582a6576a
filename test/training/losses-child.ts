/** node losses-child.js ENGINE: the losses of the first steps of each model, as JSON. */
import { adversarialLearner } from '../../src/training/adversarial.js';
import { type EngineName, loadEngine } from '../../src/training/engine/load-engine.js';
import type { Batch } from '../../src/training/learner.js';
import { buildModel } from '../../src/training/models/build.js';
import { buildDiscriminator } from '../../src/training/models/discriminator.js';
import { MODELS } from '../../src/training/models/index.js';
import { targetShape } from '../../src/training/models/spec.js';
import { regressionLearner } from '../../src/training/regression.js';

const STEPS = 3;
const [engine] = process.argv.slice(2) as [EngineName];
const { tf } = await loadEngine(engine);
const losses: Record<string, number[]> = {};
for (const spec of MODELS) {
  const outputs = spec.target.kind === 'clear' ? spec.inputs.length : 1;
  const line = { weights: Array(outputs).fill([1, 0, -1]), bias: Array(outputs).fill(0.1) };
  const model = buildModel(tf, spec, 1, line);
  const learner =
    spec.loss === 'adversarial'
      ? adversarialLearner(tf, model, buildDiscriminator(tf, spec.inputs.length, 1))
      : regressionLearner(tf, model);
  const pixels: [number, number, number] = [2, spec.patchSize, spec.patchSize];
  const batch: Batch = {
    size: 2,
    inputs: tf.randomUniform([...pixels, spec.inputs.length], 0, 1, 'float32', 1),
    targets: tf.randomUniform([2, ...targetShape(spec)], 0, 1, 'float32', 2),
    counts: tf.ones([...pixels, 1]),
    cloud: tf.randomUniform([...pixels, 1], 0, 1, 'float32', 3),
  };
  if (spec.target.kind === 'mean') delete batch.counts;
  losses[spec.name] = [];
  for (let step = 1; step <= STEPS; step++)
    losses[spec.name]!.push(await learner.step(batch, { rate: spec.learningRate, step }));
}
process.stdout.write(JSON.stringify(losses), () => process.exit(0));
