/**
 * Positions of the pixels of a raster on the Earth and on the grid, even across the antimeridian and at the poles; pixel sizes on the
 * ground. Pure functions of a GeoBox (CRS, transform, size). Imports files of a folder above (types) and the parts `grid` and `raster`.
 */

export { centreLonLat, type ExtentSample, isOutOfRange, sampleExtent } from './georeferenced-extent.js';
export { type GeoBox, gridToPixelTransform, gridToSourceTransform } from './georeferenced-grid-transform.js';
export { measurePixelSize, nominalPixelSize } from './georeferenced-pixel-size.js';
export { type ProjectedRectangle, projectRectangle, splitIntoQuadrants } from './georeferenced-rectangle.js';
export { datumWarning } from './georeferencing-datum-warning.js';
