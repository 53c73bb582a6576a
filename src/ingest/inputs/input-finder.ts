/** The two ways to find inputs: by their content, or by the names of their files. */
import { findInputs, type InputFinder } from './find-inputs.js';
import { NamedInputs } from './named-inputs.js';

/** Throws TW_INGEST_BAD_PATTERN. */
export function inputFinder(namePattern?: string): InputFinder {
  if (namePattern !== undefined) return new NamedInputs(namePattern);
  return { find: findInputs, filesOf: async (input) => [input] };
}
