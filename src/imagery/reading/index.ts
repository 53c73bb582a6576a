/**
 * Reads pixels and masks from stored tile files (GeoTIFFs of this program). Invariant: only required blocks are decoded; a damaged file
 * causes TW_IMAGERY_TILE_FILE, never wrong pixels. Imports the parts async, expressions, grid, raster and storage.
 */
export { type BandFile, bandFile, bandFiles, groupsOf, maskFile, physicalValue } from './band-files.js';
export { BlockCache } from './block-cache.js';
export { isClear } from './clear-pixels.js';
export { withOpenTile } from './open-tile.js';
export { READ_HANDLERS } from './read-handlers.js';
export { buildSingleBandCog } from './single-band-cog.js';
export { readBlock, readBlockOfAllBands, readMaskBlock, type TileGeoTiff } from './tile-geotiff.js';
export { TileReader } from './tile-reader.js';
