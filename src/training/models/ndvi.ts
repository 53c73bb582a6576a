import { PATCH_BANDS, PATCH_SIZE } from '../patches.js';
import type { ModelSpec } from './spec.js';

/**
 * Mean NDVI of a patch from its red, green and blue reflectance.
 *
 * Land differs little between the visible bands, so brightness and the two colour differences go in rather than the bands.
 * Cells pool by their mean, since the target is itself a mean over pixels; with maxima the same net fell behind ridge
 * regression on real scenes.
 */
export const ndviModel: ModelSpec = {
  name: 'ndvi',
  inputShape: [PATCH_SIZE, PATCH_SIZE, PATCH_BANDS],
  layers: [
    {
      // (mean - 0.1) / 0.1, (red - green) / 0.1, (green - blue) / 0.1
      type: 'mix',
      weights: [
        [10 / 3, 10, 0],
        [10 / 3, -10, 10],
        [10 / 3, 0, -10],
      ],
      bias: [-1, 0, 0],
    },
    { type: 'cell', filters: 8 },
    { type: 'cell', filters: 16 },
    { type: 'cell', filters: 32 },
    { type: 'average' },
    { type: 'dense', units: 32, activation: 'relu' },
  ],
  loss: 'meanSquaredError',
  epochs: 60,
  batchSize: 32,
  learningRate: 1e-2,
};
