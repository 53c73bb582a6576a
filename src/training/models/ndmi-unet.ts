import { SPECTRAL_INDICES } from '../../expressions/index.js';
import { type ModelSpec, RGB_BANDS, rgbNormalisation } from './spec.js';

/**
 * Maps NDMI from red, green and blue reflectance: a U-Net whose blocks are convolution, batch normalisation and leaky ReLU (figure 6 of
 * the paper). It has few filters, because it is trained on one cell.
 */
export const ndmiModel: ModelSpec = {
  name: 'ndmi',
  title: 'a map of NDMI from red, green and blue',
  architecture: 'U-Net',
  inputs: RGB_BANDS,
  target: { kind: 'map', index: SPECTRAL_INDICES.ndmi.bands },
  patchSize: 64,
  minPatches: 12,
  minValidationPatches: 3,
  maxPatches: 160,
  layers: [
    rgbNormalisation,
    { type: 'down', filters: 16 },
    { type: 'down', filters: 32 },
    { type: 'down', filters: 64 },
    { type: 'block', filters: 128 },
    { type: 'up', filters: 64 },
    { type: 'up', filters: 32 },
    { type: 'up', filters: 16 },
  ],
  headLayers: 5,
  loss: 'squared error',
  epochs: 30,
  batchSize: 8,
  memoryPerCell: 1e9,
  learningRate: 2e-3,
};
