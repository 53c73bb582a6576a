/**
 * Passes over one tile in worker threads: extreme pixels, random draws, nearest centres. `collection-passes` combines them over all tiles.
 * Invariant: results do not depend on the order of the blocks. Imports the folders `numeric`, `pixel-methods`, `reproducible-sums` and
 * `spectrum-reading`.
 */

export { type Extreme, tileExtremes } from './tile-extremes-pass.js';
export { nearestSums } from './tile-nearest-centres-pass.js';
export { drawWeightedPixel } from './tile-weighted-draw-pass.js';
