/** The built-in models, by name. */
import { unknownModel } from '../errors.js';
import { ndmiModel } from './ndmi-unet.js';
import { ndviModel } from './ndvi-cnn.js';
import { cloudRemovalModel } from './spa-gan.js';
import type { ModelSpec } from './spec.js';

export const BUILTIN_MODELS: readonly ModelSpec[] = [ndviModel, ndmiModel, cloudRemovalModel];

export const MODEL_NAMES = BUILTIN_MODELS.map(({ name }) => name);

/** Returns the specification of a built-in model. Throws TW_TRAIN_MODEL. */
export function getModelSpec(name: string): ModelSpec {
  const spec = BUILTIN_MODELS.find((model) => model.name === name);
  if (spec === undefined) throw unknownModel(name, MODEL_NAMES.join(', '));
  return spec;
}
