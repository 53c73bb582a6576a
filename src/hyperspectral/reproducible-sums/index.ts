/**
 * Sums over the pixels of many tiles, as integers in fixed point. Mean, covariance and class means are computed from them. Invariant: sums
 * do not depend on the order of addition. Imports the folder `spectrum-reading` and the part `raster`.
 */
export { BandProducts } from './band-product-sums.js';
export { type BandStatistics, ExactSums, type FixedPointSums } from './exact-band-sums.js';
export {
  CLASS_SUMS,
  type ClassMean,
  ClassSums,
  type FixedPointClassSums,
  type SentClassSums,
  TileClassSums,
} from './reproducible-class-sums.js';
export { type SummedQuantity, tileSums } from './reproducible-tile-sums.js';
export {
  type SentSumsByEncoding,
  SUMS_BY_ENCODING_SCHEMA,
  SumsByEncoding,
  type ValueEncoding,
} from './sums-by-encoding.js';
