/**
 * Compares records with files and objects, and files with records (`tilewright verify`). Invariant: it changes nothing, except that it
 * removes damaged local copies of objects; a change during the run is not reported as damage. Imports files of a folder above (types), the
 * folders `catalogue`, `column-index` (types), `files`, `object-store` (types), `records` (types) and `write` and the part `grid`.
 */
export { type VerifyOptions, type VerifyReport, verify } from './verify.js';
