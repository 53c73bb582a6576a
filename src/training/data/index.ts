/**
 * From stored tiles to arrays: cells with their acquisitions, the pixels of each, and the temporal prior for cloud removal. Knows bands,
 * scales and masks, but not networks. Imports files of a folder above, the folder `models` and the parts `expressions`, `grid` (types),
 * `raster` and `storage` (types).
 */

export { coarsenMask } from './coarsen-training-pixels.js';
export { dilateMask } from './dilate-training-mask.js';
export { fitPrior, type PriorFit } from './fit-training-prior.js';
export {
  differInSize,
  type ReadOutcome,
  type ReadRasters,
  readAcquisitions,
  readAcquisitionWindow,
} from './read-training-data.js';
export type { AcquisitionFiles, DatePair } from './training-data-acquisitions.js';
export {
  acquisitionFiles,
  areAlike,
  bandValueKinds,
  coarsestGroup,
  commonPixels,
  groupTilesByCell,
  type TrainingCell,
  trainedPixels,
  trainingCellKey,
  trainingFiles,
} from './training-data-cells.js';
export {
  type AcquisitionPixels,
  clearMask,
  inputMaskOf,
  isCloudy,
  mappableMask,
} from './training-data-pixels.js';
export {
  applyPriorFit,
  cloudInputs,
  composeCloudInputs,
  type PriorValues,
  priorDates,
  priorValues,
} from './training-data-prior.js';
export type { BandValueKind, TilePixels, TrainedPixels } from './training-pixel-kind.js';
