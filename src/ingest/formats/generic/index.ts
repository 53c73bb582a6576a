/**
 * Rasters of unknown products: any raster, a STAC Item with its assets, CF grids. Invariant: every guess becomes a warning of
 * the scene. May import formats/shared, georeferencing and band-groups.
 */
export { cfGrid } from './generic-cf-grid.js';
export { checkOptions, refuseBandFlags } from './generic-metadata-options.js';
export { asCommonName } from './generic-raster-bands.js';
export { rasterFile } from './generic-raster-file.js';
export { stacItem } from './generic-stac-item.js';
export { readItemBesideFile } from './generic-stac-sidecar.js';
