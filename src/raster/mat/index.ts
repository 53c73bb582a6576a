/**
 * Reads arrays of MATLAB 5 files. Invariant: a compressed variable is streamed and is never in memory as a whole. Imports files of a folder
 * above (types) and the folders `file-access` and `pixels`.
 */
export { openMat } from './mat-header.js';
export { readMat } from './read-mat.js';
