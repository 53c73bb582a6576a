/**
 * Positions of the pixels of a raster on the Earth and on the grid, even across the antimeridian and at the poles; pixel sizes on the
 * ground. Pure functions of a GeoBox (CRS, transform, size). Imports files of a folder above (types) and the parts `grid` and `raster`.
 */
export { datumWarning } from './datum-warning.js';
export { measurePixelSize, nominalPixelSize } from './georeferenced-pixel-size.js';
export { type GeoBox, gridToPixelTransform, gridToSourceTransform } from './grid-to-source-transform.js';
export { type ProjectedRectangle, projectRectangle, splitIntoQuadrants } from './project-rectangle.js';
export { centreLonLat, type ExtentSample, isOutOfRange, sampleExtent } from './raster-extent.js';
