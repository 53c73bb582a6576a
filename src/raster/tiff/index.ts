/**
 * Reads TIFF, BigTIFF and GeoTIFF: IFDs, geo keys, mask images, blocks. Invariant: every offset is checked against the file before it is
 * used. Imports files of a folder above (types) and the folders `compression`, `compression/deflate`, `crs`, `file-access`, `metadata` and
 * `pixels`.
 */

export { readTiff } from './read-tiff.js';
export { alignToBlocks } from './read-tiff-block.js';
export { readTiffHeader } from './tiff-header.js';
export { maskPath, openExternalMask } from './tiff-mask-image.js';
export { blocksOfWindow, isTiff, withOnlyBlocks } from './tiff-window-blocks.js';
