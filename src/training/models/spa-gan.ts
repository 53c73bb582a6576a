import { type LayerSpec, type ModelSpec, RGB_BANDS } from './spec.js';

const FILTERS = 32;

/** Number of attentive blocks after the attention map, as in figure 7 of the paper. */
const ATTENTIVE_BLOCKS = 3;

const repeatLayer = (count: number, layer: LayerSpec): LayerSpec[] => Array<LayerSpec>(count).fill(layer);

/**
 * Removes cloud from a date: the generator of SpA-GAN (figure 7 of the paper; Pan 2020), from reflectance to reflectance. The network
 * learns the residual, so training starts from the unchanged date.
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
