/**
 * Reads HDF5, netCDF-4 and HDF-EOS5 through h5wasm. Invariant: the library can open only the file that it was given (hdf5-sandbox.ts).
 * Imports files of a folder above (types) and the folders `crs`, `file-access`, `metadata` and `pixels`.
 */
export { type CubeLayout, openHdf5Cube } from './hdf5-cube-header.js';
export { openHdf5 } from './hdf5-header.js';
export { listHdf5Subdatasets } from './hdf5-subdatasets.js';
export { readHdf5 } from './read-hdf5.js';
export { readHdf5Cube } from './read-hdf5-cube.js';
export { readHdf5Lists, readHdf5Points } from './read-hdf5-values.js';
