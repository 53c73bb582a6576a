/**
 * Predicts a tile with the pixels of the cells around it, and blends the models of neighbouring cells near their borders. Invariant: both
 * tiles of a border compute the same weights, and for each model the same values. Imports the folders `data`, `inference` and `models`
 * (types) and the parts `engines` (types), `grid` (types), `raster` (types) and `storage` (types), and files of a folder above.
 */
export { fillBlendedClouds } from './fill-blended-clouds.js';
export type { CellDates, LoadModel, ModelFiles, TileHalo, TileNeighbour } from './halo-task.js';
export { predictBlended } from './predict-blended.js';
export { PriorFits } from './prior-fits.js';
