/**
 * Gridded land products of MODIS (HDF4-EOS) and VIIRS (HDF-EOS5), identified by the short name in their metadata. Imports files of a folder
 * above, the folders `formats/shared` and `georeferencing` and the part `raster`.
 */
export { modis } from './modis.js';
export { viirs } from './viirs.js';
