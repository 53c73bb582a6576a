/**
 * Landsat 4-9, level 1 and 2, with the MTL metadata in its three forms. Invariant: the position is that of the rasters, never that of the
 * MTL. Imports files of a folder above, the folders `formats/shared` and `georeferencing` and the part `raster`.
 */
export { landsat } from './landsat.js';
export { type MtlGroup, readMtl } from './landsat-mtl.js';
