/**
 * Rasters of unknown products: any raster, a STAC Item with its assets, CF grids. Invariant: every guess becomes a warning of the scene.
 * Imports files of a folder above, the folders `formats/shared` and `georeferencing` and the part `raster`.
 */
export { cfGrid } from './generic-cf-grid.js';
export { checkOptions } from './generic-metadata-options.js';
export { rasterFile } from './generic-raster-file.js';
export { stacItem } from './generic-stac-item.js';
export { readItemBesideFile } from './generic-stac-sidecar.js';
