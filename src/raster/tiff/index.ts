/**
 * Reads TIFF, BigTIFF and GeoTIFF: IFDs, geo keys, mask images, blocks. Invariant: every offset is checked against the file
 * before it is used. May import compression, crs, file, metadata and pixels.
 */
export { readTiffHeader } from './header.js';
export { maskPath, openExternalMask } from './mask-image.js';
export { readTiff } from './read.js';
export { alignToBlocks } from './read-block.js';
