/**
 * Replaces `fast-check` in mutation tests: a property runs only the first few inputs of its seed, and does not search for the smallest
 * one that fails. Instrumented code is slow, and most mutants fail at once.
 */
import fc, { type IProperty, type IRawProperty, type Parameters } from 'fast-check';

const MOST_RUNS = 50;

function assert<T>(property: IProperty<T> & IRawProperty<T>, given: Parameters<T> = {}) {
  const numRuns = Math.min(given.numRuns ?? 100, MOST_RUNS);
  return fc.assert(property, { ...given, numRuns, endOnFailure: true });
}

export default { ...fc, assert };
