/**
 * Reads pixels and masks from stored tile files (GeoTIFFs of this program). Invariant: only required blocks are decoded; a damaged file
 * causes TW_IMAGERY_TILE_FILE, never wrong pixels. Imports the parts `async` (types), `expressions` (types), `grid`, `raster` and `storage`
 * (types).
 */

export { BlockCache } from './image-reading-cache.js';
export { READ_HANDLERS } from './image-reading-handlers.js';
export { TileReader } from './image-tile-reader.js';
export { withOpenTile } from './open-tile-for-reading.js';
export {
  type BandFile,
  bandFile,
  bandFiles,
  groupsOf,
  isClear,
  maskFile,
  physicalValue,
} from './read-image-band-files.js';
export { buildSingleBandCog } from './read-single-band-cog.js';
export { readBlock, readBlockOfAllBands, readMaskBlock, type TileGeoTiff } from './read-tile-geotiff.js';
