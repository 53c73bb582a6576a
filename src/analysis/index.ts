/** Statistics over the bands of many tiles, exact in any order of adding: the base of principal components and of classification. */
export { type BandStatistics, ExactSums, type SentSums } from './band-statistics.js';
export { BandProducts, type DeviationSums, OFFSET_STEP } from './products.js';
