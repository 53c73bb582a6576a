/**
 * Sentinel-2 level 1C and 2A: SAFE products, and band files without that structure. Invariant: paths in the metadata are never opened.
 * Imports files of a folder above, the folders `formats/shared` and `georeferencing` and the parts `async` and `raster`.
 */
export { sentinel2Loose } from './sentinel2-loose-bands.js';
export { sentinel2 } from './sentinel2-safe.js';
