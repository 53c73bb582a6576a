/**
 * Stored classifiers: files, card, and the match of their bands with those of a tile. Invariant: a classifier is applied only to tiles that
 * have all of its bands. Imports the folders `classification` (types), `jobs`, `pixel-methods` (types), `spectral-cnn` and
 * `spectrum-reading` and the parts `grid`, `query`, `raster` and `storage`.
 */
export { CLASSIFIER, type ClassifierCard, pixelHeight, storeClassifier } from './classifier-card.js';
export { inputBands } from './registry-classifier-bands.js';
