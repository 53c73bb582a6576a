/**
 * Imaging spectrometers: DESIS, EMIT, EnMAP, Hyperion, PRISMA. Invariant: every band has its centre wavelength. May import
 * formats/shared, formats/landsat (MTL) and band-groups.
 */
export { desis } from './desis.js';
export { emit } from './emit.js';
export { enmap } from './enmap.js';
export { hyperion } from './hyperion.js';
export { prisma } from './prisma.js';
