/**
 * Imaging spectrometers: DESIS, EMIT, EnMAP, Hyperion, PRISMA. Invariant: every band has its centre wavelength. Imports files of a folder
 * above, the folders `formats/landsat`, `formats/shared` and `georeferencing` and the part `raster`.
 */
export { desis } from './desis.js';
export { emit } from './emit.js';
export { enmap } from './enmap.js';
export { hyperion } from './hyperion.js';
export { prisma } from './prisma.js';
