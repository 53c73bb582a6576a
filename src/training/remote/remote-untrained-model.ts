import { EngineProcess, ProcessEnded } from '../../engines/index.js';
import { trainingFailed } from '../errors.js';
import type { ModelFiles } from '../models/index.js';
import { TRAINING_WORKER, type TrainingHandlers } from '../train-cell/index.js';

/**
 * Returns the files of an untrained model, built in a separate process. The topology does not depend on the engine. Rejects with the
 * reason of the signal if it aborts, and with TW_TRAIN_MODEL, TW_TRAIN_ENGINE, TW_TRAIN_FAILED.
 */
export async function untrainedModel(
  blank: { model: string; seed: number },
  signal: AbortSignal,
): Promise<ModelFiles> {
  const child = new EngineProcess<TrainingHandlers>(TRAINING_WORKER, 'wasm');
  try {
    return await child.request('build', blank, { signal });
  } catch (error) {
    if (!(error instanceof ProcessEnded)) throw error;
    throw trainingFailed.because(error, `the model was not built (${error.message})`);
  } finally {
    child.close();
  }
}
