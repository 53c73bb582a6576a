import { defineError } from '../errors.js';

export const engineUnavailable = defineError(
  'TW_TRAIN_ENGINE',
  422,
  'The training engine that was asked for cannot be used here. The message names the reason; leave the engine out to take the best one that works.',
  (engine: string, reason: string) => `training engine ${engine} cannot be used: ${reason}`,
);

export const noEngine = defineError(
  'TW_TRAIN_NO_ENGINE',
  500,
  'No training engine passed its self-test. The message names the reason of each; reinstalling the packages usually helps.',
  (reasons: string) => `no training engine works here: ${reasons}; reinstall the packages with npm ci`,
);
