/** The files of a dense network: a layers model of TensorFlow.js, as for all models. */

import { damagedClassifier } from '../../errors.js';
import { type DenseLayer, type DenseNetwork, layerViews, type Sizes, transposed } from './dense-network.js';

/** Returns `model.json` and `weights.bin`. The model reads physical values of the bands and returns probabilities of the classes. */
export function saveClassifier({ centre, deviation, layers }: DenseNetwork): Record<string, Uint8Array> {
  const bands = centre.length;
  const norm = 'standardise';
  const names = layers.map((_, l) => (l === layers.length - 1 ? 'output' : `hidden_${l + 1}`));
  const layer = (class_name: string, name: string, config: object, input?: string) => ({
    class_name,
    name,
    config: { name, trainable: true, ...config },
    inbound_nodes: input === undefined ? [] : [[[input, 0, 0, {}]]],
  });
  const topology = {
    class_name: 'Model',
    config: {
      name: 'classifier',
      layers: [
        layer('InputLayer', 'input', {
          batch_input_shape: [null, bands],
          dtype: 'float32',
          sparse: false,
        }),
        layer(
          'BatchNormalization',
          norm,
          { axis: -1, momentum: 0.99, epsilon: 0, center: false, scale: false },
          'input',
        ),
        ...layers.map(({ bias }, l) =>
          layer(
            'Dense',
            names[l],
            {
              units: bias.length,
              activation: l === layers.length - 1 ? 'softmax' : 'tanh',
              use_bias: true,
            },
            l === 0 ? norm : names[l - 1],
          ),
        ),
      ],
      input_layers: [['input', 0, 0]],
      output_layers: [['output', 0, 0]],
    },
    keras_version: 'tfjs-layers',
    backend: 'tensor_flow.js',
  };
  const weights = [
    { name: `${norm}/moving_mean`, shape: [bands], values: centre },
    { name: `${norm}/moving_variance`, shape: [bands], values: deviation.map((value) => value ** 2) },
    ...layers.flatMap(({ weights, bias }, l) => [
      // Dense layers of TensorFlow have a column for each output.
      {
        name: `${names[l]}/kernel`,
        shape: [weights.length / bias.length, bias.length],
        values: transposed(weights, bias.length),
      },
      { name: `${names[l]}/bias`, shape: [bias.length], values: bias },
    ]),
  ];
  const json = {
    format: 'layers-model',
    generatedBy: 'tilewright',
    convertedBy: null,
    modelTopology: topology,
    weightsManifest: [
      {
        paths: ['weights.bin'],
        weights: weights.map(({ name, shape }) => ({ name, shape, dtype: 'float32' })),
      },
    ],
  };
  const values = Float32Array.from(weights.flatMap((one) => Array.from(one.values)));
  return {
    'model.json': Buffer.from(JSON.stringify(json)),
    'weights.bin': new Uint8Array(values.buffer),
  };
}

/** Parses the network of `weights.bin`. All numbers are float32 values. Throws TW_ANALYSIS_CLASSIFIER if the size does not match. */
export function parseNetwork(id: string, weights: Uint8Array, sizes: Sizes): DenseNetwork {
  const values = Float64Array.from(new Float32Array(Uint8Array.from(weights).buffer));
  const bands = sizes[0];
  const count = sizes.slice(1).reduce((sum, rows, l) => sum + rows * (sizes[l] + 1), 2 * bands);
  if (values.length !== count)
    throw damagedClassifier(id, `it has ${values.length} weights in place of ${count}`);
  const layers = layerViews(values.subarray(2 * bands), sizes).map(
    ({ weights, bias }): DenseLayer => ({
      weights: transposed(weights, weights.length / bias.length),
      bias,
    }),
  );
  const deviation = values.subarray(bands, 2 * bands).map(Math.sqrt);
  return { centre: values.subarray(0, bands), deviation, layers };
}
