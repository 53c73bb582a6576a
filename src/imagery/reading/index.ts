/**
 * Reads pixels and masks from stored tile files (GeoTIFFs of this program). Invariant: only required blocks are decoded; a damaged file
 * causes TW_IMAGERY_TILE_FILE, never wrong pixels. Imports the parts `async` (types), `expressions` (types), `grid`, `raster` and `storage`
 * (types).
 */

export { withOpenTile } from './open-tile-file.js';
export { type BandFile, bandFile, bandFiles, groupsOf, maskFile, physicalValue } from './read-band-files.js';
export { isClear } from './read-clear-pixels.js';
export { READ_HANDLERS } from './read-handlers.js';
export { buildSingleBandCog } from './read-single-band-cog.js';
export { readBlock, readBlockOfAllBands, readMaskBlock, type TileGeoTiff } from './read-tile-geotiff.js';
export { BlockCache } from './tile-block-cache.js';
export { TileReader } from './tile-reader.js';
