/** What the models share that read red, green and blue. */
import type { BandName, LayerSpec } from './model-spec.js';

export const RGB_BANDS: readonly BandName[] = ['red', 'green', 'blue'];

/**
 * (mean - 0.1) / 0.1, (red - green) / 0.1, (green - blue) / 0.1: land differs little between the visible bands, so brightness
 * and the two colour differences go in rather than the bands.
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
