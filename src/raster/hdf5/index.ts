/**
 * Reads HDF5, netCDF-4 and HDF-EOS5 through h5wasm. Invariant: the library can open only the file that it was given
 * (sandbox.ts). May import crs, file, metadata and pixels.
 */
export { type CubeLayout, openHdf5Cube } from './cube-header.js';
export { openHdf5 } from './header.js';
export { readHdf5 } from './read.js';
export { readHdf5Cube } from './read-cube.js';
export { readHdf5Lists, readHdf5Points } from './read-values.js';
export { listHdf5Subdatasets } from './subdatasets.js';
