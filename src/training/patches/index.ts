/**
 * From arrays to samples: labelled images, held-out ground and dates, patches, augmentation, batches. Invariants: the choice of the split
 * uses masks only, never values; held-out ground is at least one patch away from training ground. Imports the folders `data` and `models`
 * and the parts `engines` (types) and `raster`.
 */

export { concatPatches } from './concat-patches.js';
export { validationDate } from './hold-out-patches.js';
export { augmentedBatch, type Batch, inferenceBatches } from './patch-batches.js';
export { type LabelledImage, labelImages } from './patch-label-images.js';
export {
  type AppliedHoldOut,
  filledOnly,
  makePatches,
  type Patches,
  selectPatches,
  subsamplePatches,
  type TrainValidationPatches,
  tooFewPatches,
} from './patches.js';
export { samplePatches } from './sample-patches.js';
