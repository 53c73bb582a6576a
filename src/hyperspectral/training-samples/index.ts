/**
 * Standardised spectra and patches of the labelled pixels of a tile, in shared memory. Runs in worker threads. Invariant: which pixels are
 * sampled depends only on their positions. Imports the folders `class-labels`, `numeric`, `pixel-methods` and `spectrum-reading` and the
 * part `async`.
 */
export { type LabelledPatches, labelledPatches } from './sample-labelled-patches.js';
export { type LabelledSpectra, labelledSpectra, sampleFractions } from './sample-labelled-spectra.js';
export { BYTES_PER_VALUE, loadSpectra, PRECISIONS, type Precision } from './training-sample-precision.js';
