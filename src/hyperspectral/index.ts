/**
 * Analyses of spectra as batch jobs on the nodes that own the tiles: statistics, components, detection, unmixing, classification.
 * `processes` has one file for each analysis; the other folders are its layers, from `spectrum-reading` to `classifier-registry`.
 * Invariant: results have the same bits on any distribution of the tiles over nodes. Imports the parts `async`, `derive`, `engines`,
 * `expressions`, `grid`, `html`, `imagery`, `ingest`, `jobs` (types), `query`, `raster`, `storage` and `training`.
 */

export { readLabels } from './class-labels/index.js';
export type { ClassifyInputs } from './classification/index.js';
export { CLASSIFIER, type ClassifierCard } from './classifier-registry/index.js';
export { HyperspectralPool } from './jobs/spectral-job-pool.js';
export * from './processes/index.js';
export { NARROW_BAND_INDICES, readSensor, SENSOR_NAMES } from './spectra/index.js';
export { patchSide } from './spectral-cnn/index.js';
export { readLibrary } from './spectral-library/index.js';
export { type MapResults, mapProcess } from './spectral-maps/index.js';
