/** The child process that builds a model and trains nothing. Started by blank-model.ts. */
import { messageOf, sentError, TilewrightError } from '../../errors.js';
import { type EngineName, loadEngine } from '../engine/load-engine.js';
import { trainingFailed } from '../errors.js';
import { buildModel } from '../models/build.js';
import { modelNamed } from '../models/index.js';
import { saveModel } from '../weights.js';
import type { BlankAnswer, BlankModel } from './blank-model.js';

const [engine] = process.argv.slice(2);

async function build({ model: name, seed }: BlankModel): Promise<BlankAnswer> {
  try {
    const { tf } = await loadEngine(engine as EngineName);
    const spec = modelNamed(name);
    return { files: await saveModel(tf, buildModel(tf, spec, seed)) };
  } catch (error) {
    const known = error instanceof TilewrightError ? error : trainingFailed.because(error, messageOf(error));
    return { error: sentError(known) };
  }
}

process.on('message', async (blank: BlankModel) => {
  process.send?.(await build(blank));
});
process.on('disconnect', () => process.exit());
