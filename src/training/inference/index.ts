/**
 * Applies a model to arrays: patches, or an image in sliding windows whose predictions are blended. Invariant: a pixel that cannot be
 * predicted is NaN, never a guess. Imports the folders `data`, `models` (types) and `patches` and the parts `engines` and `grid` (types).
 */
export { boundsOf, fillBox, readsPrior } from './halo-cloud-filling.js';
export { type HaloImage, intersection, type PixelBox } from './halo-image.js';
export { type BoxPredictor, boxPredictor, haloWidth } from './halo-prediction.js';
export { type FilledDate, fillablePixels, fillClouds, finiteFills } from './inference-cloud-filling.js';
export { inferenceBatchSize, predictPatches } from './inference-patches.js';
export { predictImage } from './sliding-window.js';
