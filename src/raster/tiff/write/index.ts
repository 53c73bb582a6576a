/**
 * Writes GeoTIFFs: Cloud Optimized GeoTIFFs with overviews and masks, cubes for reading spectra, and single bands of stored
 * files without decoding them. Invariant: the same image results in the same bytes. May import compression, metadata, pixels
 * and the tags of tiff.
 */
export { type AssembledFile, extractBand } from './band-file.js';
export type { ImageDescription } from './cog-ifds.js';
export { CUBE_BLOCK_SIDE, CubeFile, type CubeImage, encodeCube } from './cube-file.js';
export { type CogImage, encodeCog } from './write-cog.js';
