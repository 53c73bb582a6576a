/**
 * Spectral libraries: reading, checking, resampling to the bands of an instrument, writing. Invariant: spreadsheets never interpret a
 * written name as a formula. Imports the folders `spectra` and `spectrum-reading` (types) and the part `raster`.
 */

export { readLibrary } from './read-spectral-library.js';
export { type Library, resampledSpectra, resampleLibrary } from './resample-spectral-library.js';
export { checkLibrary, coveredBands, LIBRARY } from './spectral-library-input.js';
export { libraryCsv } from './write-spectral-library.js';
