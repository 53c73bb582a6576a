/**
 * Applies a model to arrays: patches, or an image in sliding windows whose predictions are blended. Invariant: a pixel that cannot be
 * predicted is NaN, never a guess. Imports `patches`, `data` and `models`.
 */
export { fillClouds } from './inference-cloud-filling.js';
export { inferenceBatchSize, predictPatches } from './inference-patches.js';
export { predictImage } from './inference-sliding-window.js';
