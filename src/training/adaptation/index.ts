/**
 * Adapts one base model of a region to each of its cells: a fine-tuning with small steps on patches of the cell and of other cells.
 * Invariant: no choice reads validation patches. Imports files of a folder above, the folders `learners`, `models` and `patches`, and the
 * part `engines` (types).
 */
export { adaptationEpochs, fineTuneBase } from './fine-tune-base.js';
export { interpolateWeights } from './interpolate-weights.js';
export {
  adaptationPasses,
  encodeSample,
  keptFactor,
  readSampleMessages,
  readSamples,
  type SampleMessage,
  sharingCells,
  withOtherCells,
  writeSamples,
} from './region-sample.js';
