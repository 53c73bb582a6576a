/**
 * Reads ENVI images and spectral libraries: a text header beside a file of bare numbers. Invariant: the size of the file must agree with
 * its header. Imports files of a folder above (types) and the folders `crs`, `file-access`, `metadata` and `pixels`.
 */
export { openEnvi, openEnviImage, otherEnviFile } from './envi-header.js';
export { readEnviLibrary } from './envi-spectral-library.js';
export { readEnvi } from './read-envi.js';
