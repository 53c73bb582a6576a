/**
 * Resampling of stored bands to the pixels of an image, with GDAL's kernels. Invariant: pixels without data get no weight. Imports files of
 * a folder above, the folder `reading` and the parts `async` (types), `grid` and `raster` (types).
 */
export * from './resample-band.js';
export * from './resampling-viewport.js';
