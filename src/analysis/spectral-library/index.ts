/**
 * Spectral libraries: reading, checking, resampling to the bands of an instrument, writing. Invariant: spreadsheets never interpret a
 * written name as a formula. Imports the folders spectra and tile-reading and the part raster.
 */
export { checkLibrary, coveredBands, LIBRARY } from './library-input.js';
export { readLibrary } from './read-library.js';
export { type Library, resampledSpectra, resampleLibrary } from './resample-library.js';
export { libraryCsv } from './write-library.js';
