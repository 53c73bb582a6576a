import { receivedError, type SentError } from '../../errors.js';
import { forkWithEngine } from '../engine/fork.js';
import { trainingFailed } from '../errors.js';
import type { ModelFiles } from '../weights.js';

export interface BlankModel {
  model: string;
  seed: number;
}

export type BlankAnswer = { files: ModelFiles } | { error: SentError };

/**
 * The files of an untrained model, built in a process of its own; the topology is the same whatever engine builds it. Rejects with the
 * signal's reason where it aborts, and with TW_TRAIN_MODEL, TW_TRAIN_ENGINE, TW_TRAIN_FAILED.
 */
export function blankModel(blank: BlankModel, signal: AbortSignal): Promise<ModelFiles> {
  const child = forkWithEngine(new URL('./blank-child.js', import.meta.url), 'wasm');
  return new Promise<ModelFiles>((resolve, reject) => {
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : error);
    child.on('message', (answer: BlankAnswer) => {
      if ('files' in answer) resolve(answer.files);
      else fail(receivedError(answer.error));
    });
    child.on('error', fail);
    child.on('exit', (code, how) =>
      fail(trainingFailed(`the model was not built (${how ?? `exit code ${code}`})`)),
    );
    signal.addEventListener('abort', () => fail(signal.reason), { once: true });
    child.send(blank, (error) => {
      if (error) fail(error);
    });
  }).finally(() => child.kill('SIGKILL'));
}
