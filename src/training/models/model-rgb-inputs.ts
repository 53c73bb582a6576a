/** Shared by the models that read red, green and blue. */
import type { BandName, LayerSpec } from './model-spec.js';

export const RGB_BANDS: readonly BandName[] = ['red', 'green', 'blue'];

/**
 * Brightness and two colour differences instead of the bands, because land differs little between the visible bands: (mean - 0.1) / 0.1,
 * (red - green) / 0.1, (green - blue) / 0.1.
 */
export const rgbNormalisation: LayerSpec = {
  type: 'mix',
  weights: [
    [10 / 3, 10, 0],
    [10 / 3, -10, 10],
    [10 / 3, 0, -10],
  ],
  bias: [-1, 0, 0],
};
