/**
 * Class labels of pixels from images, polygons, points or another collection, and their split into training, tuning and validation.
 * Invariant: the set of a pixel depends only on its position, so it is the same on all dates. Imports the folders `reproducible-sums` and
 * `spectrum-reading` and the parts `async`, `derive`, `grid`, `imagery`, `query` (types), `raster` and `storage`.
 */

export { SETS, type SplitKind, setOf, TRAIN, TUNE, VALIDATION } from './class-label-split.js';
export { checkLabels, classesOfCodes, LABELS, type Labels, openLabels } from './class-labels.js';
export { eachLabelled, type LabelledTile, type LabelSums, labelSums } from './class-pixel-labels.js';
export { withLabels } from './collection-class-labels.js';
export { readLabels } from './read-class-labels.js';
