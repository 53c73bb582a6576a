/**
 * Algorithms that read all tiles once or several times, on all nodes: statistics, extreme pixels, endmembers, k-means. Invariant: results
 * have the same bits on any distribution of the tiles. Imports the folders `class-labels`, `jobs`, `numeric`, `reproducible-sums`,
 * `spectrum-reading` (types) and `tile-passes` (types) and the parts `grid`, `jobs` (types), `raster` and `storage` (types).
 */
export { type LabelledSums, labelledSums } from './collection-class-statistics.js';
export { type Endmember, findEndmembers } from './collection-endmember-extraction.js';
export { LON_LAT_SCHEMA } from './collection-extreme-pixels.js';
export { distributedKMeans, type KMeans, type SpectralCluster } from './collection-k-means.js';
export { collectionStatistics } from './collection-statistics-pass.js';
