/**
 * Reads arrays of MATLAB 5 files. Invariant: a compressed variable is streamed and is never in memory as a whole. May import
 * file and pixels.
 */
export { openMat } from './mat-header.js';
export { readMat } from './read-mat.js';
