/**
 * Coordinate reference systems: EPSG codes, WKT, datums, affine transforms, and point transforms by proj4js. Invariant: a system that
 * proj4js computes differently from PROJ is refused, or its datum error is recorded. Imports files of a folder above (types).
 */

export {
  createTransform,
  crsFromEpsg,
  customCrs,
  datumForEpsg,
  isGeographicEpsg,
  metresPerUnit,
  type PointTransform,
} from './crs.js';
export { affineOfGdal, isInvertible, mapToPixel, pixelToMap } from './crs-affine-transform.js';
export { crsFromWkt } from './crs-wkt.js';
export { type Datum, datumFromEllipsoid, minorAxis } from './datum.js';
export { datumByName } from './epsg-table.js';
