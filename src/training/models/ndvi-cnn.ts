import { SPECTRAL_INDICES } from '../../expressions/index.js';
import { type ModelSpec, RGB_BANDS, rgbNormalisation } from './spec.js';

/**
 * Predicts the mean NDVI of a patch from red, green and blue reflectance.
 *
 * Its cells use average pooling, because the target is a mean over pixels; with maximum pooling the same network was worse than ridge
 * regression on real scenes.
 */
export const ndviModel: ModelSpec = {
  name: 'ndvi',
  title: 'mean NDVI of a patch from its red, green and blue',
  architecture: 'CNN',
  inputs: RGB_BANDS,
  target: { kind: 'mean', index: SPECTRAL_INDICES.ndvi.bands },
  patchSize: 16,
  minPatches: 32,
  minValidationPatches: 8,
  maxPatches: 480,
  layers: [
    rgbNormalisation,
    { type: 'cell', filters: 8 },
    { type: 'cell', filters: 16 },
    { type: 'cell', filters: 32 },
    { type: 'average' },
    { type: 'dense', units: 32, activation: 'relu' },
  ],
  headLayers: 3,
  loss: 'squared error',
  epochs: 30,
  batchSize: 32,
  memoryPerCell: 1e9,
  learningRate: 3e-3,
};
