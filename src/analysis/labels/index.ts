/**
 * Class labels of pixels from images, polygons, points or another collection, and their split into training, tuning and validation.
 * Invariant: the set of a pixel depends only on its position, so it is the same on all dates. Imports the folders reproducible-sums and
 * tile-reading and the parts async, derive, grid, imagery, query, raster and storage.
 */
export { withLabels } from './collection-labels.js';
export { eachLabelled, type LabelledTile, type LabelSums, labelSums } from './labelled-pixels.js';
export { checkLabels, classesOfCodes, LABELS, type Labels, openLabels } from './labels.js';
export { readLabels } from './read-labels.js';
export { SETS, type SplitKind, setOf, TRAIN, TUNE, VALIDATION } from './split.js';
