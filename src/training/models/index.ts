import { unknownModel } from '../errors.js';
import { ndviModel } from './ndvi.js';
import type { ModelSpec } from './spec.js';

const MODELS: readonly ModelSpec[] = [ndviModel];

export const MODEL_NAMES = MODELS.map(({ name }) => name);

/** A model's description by its name. Throws TW_TRAIN_MODEL. */
export function modelNamed(name: string): ModelSpec {
  const spec = MODELS.find((model) => model.name === name);
  if (spec === undefined) throw unknownModel(name, MODEL_NAMES.join(', '));
  return spec;
}
