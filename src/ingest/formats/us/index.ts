/**
 * National products of the USA: NAIP and NLCD. Invariant: a file is one of them only if both its name and its content agree. Imports files
 * of a folder above, the folders `formats/shared` and `georeferencing` and the part `raster`.
 */
export { naip } from './naip.js';
export { nlcd } from './nlcd.js';
