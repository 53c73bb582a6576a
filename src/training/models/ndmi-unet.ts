import { SPECTRAL_INDICES } from '../../expressions/index.js';
import type { ModelSpec } from './model-spec.js';
import { VISIBLE, visibleMix } from './rgb-inputs.js';

/**
 * A map of NDMI from red, green and blue reflectance: a U-Net of blocks of convolution, batch normalisation and leaky ReLU
 * (the paper's figure 6). Its filters are few, since it serves one place.
 */
export const ndmiModel: ModelSpec = {
  name: 'ndmi',
  title: 'a map of NDMI from red, green and blue',
  architecture: 'U-Net',
  inputs: VISIBLE,
  target: { kind: 'map', index: SPECTRAL_INDICES.ndmi.bands },
  patchSize: 64,
  leastPatches: 12,
  leastValidation: 3,
  mostPatches: 160,
  layers: [
    visibleMix,
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
  placeMemory: 1e9,
  learningRate: 2e-3,
};
