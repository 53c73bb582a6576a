import type { LayerSpec, ModelSpec } from './model-spec.js';
import { RGB_BANDS } from './rgb-inputs.js';

/** Filters of all its blocks. */
const FILTERS = 32;

/** Attentive blocks after the map of attention: three, as the paper's figure 7 draws them. */
const ATTENTIVE_BLOCKS = 3;

const repeatLayer = (count: number, layer: LayerSpec): LayerSpec[] => Array<LayerSpec>(count).fill(layer);

/**
 * A place without cloud from a date with cloud: the generator of SpA-GAN (the paper's figure 7; Pan 2020), from reflectance to
 * reflectance. What it adds to the cloudy date is learned, so that it starts with the date as it is.
 */
export const cloudRemovalModel: ModelSpec = {
  name: 'cloud-removal',
  title: 'red, green and blue without cloud from a cloudy date',
  architecture: 'SpA-GAN',
  inputs: RGB_BANDS,
  target: { kind: 'clear' },
  patchSize: 64,
  minPatches: 12,
  minValidationPatches: 3,
  maxPatches: 64,
  layers: [
    { type: 'conv', filters: FILTERS },
    ...repeatLayer(3, { type: 'residual' }),
    { type: 'attention' },
    ...repeatLayer(ATTENTIVE_BLOCKS, { type: 'attentive' }),
    ...repeatLayer(2, { type: 'residual' }),
  ],
  headLayers: 5,
  loss: 'adversarial',
  epochs: 12,
  batchSize: 4,
  memoryPerCell: 2e9,
  learningRate: 1e-4,
};
