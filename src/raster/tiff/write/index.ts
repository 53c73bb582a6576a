/**
 * Writes GeoTIFFs: Cloud Optimized GeoTIFFs with overviews and masks, cubes for reading spectra, and single bands of stored files without
 * decoding them. Invariant: the same image results in the same bytes. Imports files of a folder above (types) and the folders
 * `compression`, `compression/deflate`, `crs`, `metadata` and `pixels`.
 */

export { type CogImage, encodeCog } from './write-cog.js';
export type { ImageDescription } from './write-cog-ifds.js';
export { type AssembledFile, extractBand } from './write-tiff-band.js';
export { CUBE_BLOCK_SIDE, CubeFile, type CubeImage, encodeCube } from './write-tiff-cube.js';
