/** node losses-worker.js ENGINE: the losses of the first steps of each model, as JSON. */
import { type EngineName, loadEngine } from '../../src/engines/load.js';
import { BUILTIN_MODELS } from '../../src/training/models/builtin.js';
import { freshLearner } from '../training/model-steps.js';

const STEPS = 3;
const [engine] = process.argv.slice(2) as [EngineName];
const { tf } = await loadEngine(engine);
const losses: Record<string, number[]> = {};
for (const spec of BUILTIN_MODELS) {
  const { learner, batch } = freshLearner(tf, spec);
  losses[spec.name] = [];
  for (let step = 1; step <= STEPS; step++)
    losses[spec.name]!.push(await learner.step(batch, { learningRate: spec.learningRate, step }));
}
process.stdout.write(JSON.stringify(losses), () => process.exit(0));
