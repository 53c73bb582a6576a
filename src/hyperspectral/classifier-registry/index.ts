/**
 * Stored classifiers: files, card, and the match of their bands with those of a tile. Invariant: a classifier is applied only to tiles that
 * have all of its bands. Imports the folders classification, convolutional-networks, jobs, pixel-methods and tile-reading and the parts
 * grid, query, raster and storage.
 */
export { CLASSIFIER, type ClassifierCard, pixelHeight, storeClassifier } from './classifier-card.js';
export { inputBands } from './classifier-input-bands.js';
