/** Turns a model's description into a tfjs layers model. */
import type { Sequential } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engine/tf.js';
import type { LayerSpec, ModelSpec } from './spec.js';

type Layer = Parameters<Sequential['add']>[0];

/**
 * A fresh model, the same for the same seed. Its one output starts at `bias` for every input.
 * Layers have fixed names, so that equal models are equal files.
 */
export function buildModel(tf: Tf, spec: ModelSpec, seed: number, bias: number): Sequential {
  const model = tf.sequential({ name: spec.name });
  model.add(tf.layers.inputLayer({ inputShape: spec.inputShape, name: 'input' }));
  spec.layers.forEach((layer, index) => {
    for (const made of layersOf(tf, layer, index, seed + index)) model.add(made);
  });
  model.add(
    tf.layers.dense({
      units: 1,
      kernelInitializer: 'zeros',
      biasInitializer: tf.initializers.constant({ value: bias }),
      name: 'output',
    }),
  );
  spec.layers.forEach((layer, index) => {
    if (layer.type !== 'mix') return;
    const fixed = tf.tidy(() => [tf.tensor4d([[layer.weights]]), tf.tensor1d(layer.bias)]);
    model.getLayer(nameOf(layer, index)).setWeights(fixed);
    tf.dispose(fixed);
  });
  return model;
}

function nameOf({ type }: LayerSpec, index: number): string {
  return `${type}${index}`;
}

function layersOf(tf: Tf, layer: LayerSpec, index: number, seed: number): Layer[] {
  const kernelInitializer = tf.initializers.heNormal({ seed });
  switch (layer.type) {
    case 'mix':
      return [
        tf.layers.conv2d({
          filters: layer.bias.length,
          kernelSize: 1,
          trainable: false,
          name: nameOf(layer, index),
        }),
      ];
    case 'cell':
      return [
        tf.layers.conv2d({
          filters: layer.filters,
          kernelSize: 3,
          padding: 'same',
          activation: 'relu',
          kernelInitializer,
          name: nameOf(layer, index),
        }),
        tf.layers.averagePooling2d({ poolSize: 2, name: `pool${index}` }),
      ];
    case 'average':
      return [tf.layers.globalAveragePooling2d({ name: nameOf(layer, index), trainable: false })];
    case 'dense':
      return [
        tf.layers.dense({
          units: layer.units,
          activation: layer.activation,
          kernelInitializer,
          name: nameOf(layer, index),
        }),
      ];
  }
}
