/**
 * Adapts one base model of a region to each of its cells: a fine-tuning with small steps, of which each cell keeps a part. Invariant: no
 * choice reads validation patches. Imports files of a folder above and the folders `inference`, `learners`, `models` and `patches`, and the
 * part `engines` (types).
 */
export { estimateShrinkage, type UpdateAgreement, updateFactor } from './adaptation-shrinkage.js';
export { adaptationEpochs, fineTuneBase } from './fine-tune-base.js';
export { interpolateWeights } from './interpolate-weights.js';
export { measureAgreement } from './measure-agreement.js';
