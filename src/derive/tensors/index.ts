/**
 * Planes of data cubes: the bands and expressions that are requested, and their pixels at one size. Invariant: a pixel without data is NaN,
 * or the fill value of stored numbers. Imports files of a folder above (types), the folder `tiles` and the parts `expressions`, `raster`
 * and `storage` (types).
 */
export { copyCell, type MosaicGrid, mosaicGrid } from './mosaic-image.js';
export { npyHead } from './npy-header.js';
export { fillValueOf, isBand, readBandsAtSize } from './resize-tensor-bands.js';
export { type BandSubstitute, parseBandRequests, resolveBandRequest } from './select-tensor-bands.js';
