/** Errors of the engines that train and apply networks. */
import { defineError } from '../errors.js';

export const engineMemory = defineError(
  'TW_TRAIN_ENGINE_MEMORY',
  500,
  'An operation of the training engine needs more memory than WebAssembly can address, 4 GB, or than the machine has. Use smaller patches or batches, or another engine.',
  (bytes: number) =>
    `an operation needs ${Math.ceil(bytes / 1e6)} MB, which the memory of the engine does not have; use smaller patches or batches, or another engine`,
);

export const engineUnavailable = defineError(
  'TW_TRAIN_ENGINE',
  422,
  'The training engine that was asked for cannot be used here. The message names the reason; leave the engine out to take the best one that works.',
  (engine: string, reason: string) =>
    `training engine ${engine} cannot be used: ${reason}; leave --engine out to take the best that works, or install what it lacks`,
);

export const noEngine = defineError(
  'TW_TRAIN_NO_ENGINE',
  500,
  'No training engine passed its self-test. The message names the reason of each; reinstalling the packages usually helps.',
  (reasons: string) => `no training engine works here: ${reasons}; reinstall the packages with npm ci`,
);
