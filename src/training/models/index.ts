/**
 * Networks as data (`ModelSpec`), the builder that turns them into tfjs layers models, the built-in models (one file each), and models as
 * files. Invariant: the same specification and seed give the same files. Imports files of a folder above (types) and the parts `engines`
 * (types) and `expressions`.
 */
export { buildModel, LINEAR_LAYER, RESIDUAL_LAYER, setLinearWeights } from './build-model.js';
export { getModelSpec, MODEL_NAMES } from './builtin-models.js';
export { RGB_BANDS } from './model-rgb-inputs.js';
export {
  loadModel,
  type ModelFiles,
  parseWeights,
  saveModel,
  type WeightValues,
} from './model-serialization.js';
export {
  type BandName,
  hasBatchNorm,
  type ModelSpec,
  requiredBands,
  startsWithLinearFit,
  type TargetSpec,
} from './model-spec.js';
export { readWeights, setWeights } from './model-weights.js';
export { buildDiscriminator } from './patchgan-discriminator.js';
