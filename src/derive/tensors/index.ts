/**
 * Makes data cubes (NumPy or GeoTIFF) of the bands of a cell at one pixel size. Invariant: files are written step by step, with few steps
 * in memory. Imports the folder tiles and the parts expressions, grid, raster and storage.
 */
export { npyHead } from './npy.js';
export { fillValueOf, isBand, readBandsAtSize } from './resize-bands.js';
export { type BandSubstitute, parseBandRequests, resolveBandRequest } from './select-bands.js';
export { type TensorFile, writeNpy, writeTiff } from './write-tensor.js';
