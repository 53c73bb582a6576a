/** Errors of the engines that train and apply networks. */
import { defineError } from '../errors.js';

export const engineMemory = defineError(
  'TW_TRAIN_ENGINE_MEMORY',
  500,
  'An operation of the training engine needs more memory than WebAssembly can address (4 GB) or than the machine has. Use smaller patches or batches, or another engine.',
  (bytes: number) =>
    `an operation needs ${Math.ceil(bytes / 1e6)} MB of memory, more than the engine has; use smaller patches or batches, or another engine`,
);

export const engineUnavailable = defineError(
  'TW_TRAIN_ENGINE',
  422,
  'The requested training engine cannot be used here. The message has the reason; omit the engine to use the fastest one that works.',
  (engine: string, reason: string) =>
    `training engine ${engine} cannot be used: ${reason}; omit --engine to use the fastest one that works, or install what is missing`,
);

export const noEngine = defineError(
  'TW_TRAIN_NO_ENGINE',
  500,
  'No training engine passed its self-test. The message has the reason for each; reinstalling the packages usually helps.',
  (reasons: string) => `no training engine works here: ${reasons}; reinstall the packages with npm ci`,
);
