/**
 * Applies a model to arrays: patches, or an image in sliding windows whose predictions are blended. Invariant: a pixel that cannot be
 * predicted is NaN, never a guess. Imports the folders `data`, `models` (types) and `patches` and the part `engines` (types).
 */
export type { HaloImage, PixelBox } from './halo-image.js';
export { type BoxPredictor, boxPredictor, haloWidth } from './halo-prediction.js';
export { fillClouds } from './inference-cloud-filling.js';
export { inferenceBatchSize, predictPatches } from './inference-patches.js';
export { predictImage } from './sliding-window.js';
