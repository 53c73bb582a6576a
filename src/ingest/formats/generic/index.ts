/**
 * Rasters of unknown products: any raster, a STAC Item with its assets, CF grids. Invariant: every guess becomes a warning of
 * the scene. May import formats/shared, georeferencing and band-groups.
 */
export { cfGrid } from './cf-grid.js';
export { checkOptions } from './metadata-options.js';
export { asCommonName } from './raster-bands.js';
export { rasterFile } from './raster-file.js';
export { stacItem } from './stac-item.js';
export { readItemBesideFile } from './stac-item-document.js';
