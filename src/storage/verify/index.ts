/**
 * Compares records with files and objects, and files with records (`tilewright verify`). Invariant: it changes nothing, except that it
 * removes damaged local copies of objects; a change during the run is not reported as damage. May import all of `storage`.
 */
export { type VerifyOptions, type VerifyReport, verify } from './verify.js';
