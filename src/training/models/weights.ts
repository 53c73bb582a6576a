/** A model as files in the format that `tf.loadLayersModel` opens, in Node and in browsers, and its weights as arrays. */
import type { io, Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';

const WEIGHTS_FILE = 'weights.bin';

/** Topology and weight list, and the weights as consecutive little-endian float32. */
export interface ModelFiles extends Record<string, Uint8Array> {
  'model.json': Uint8Array;
  'weights.bin': Uint8Array;
}

/** Serialises a model for inference, without the state of the optimiser. */
export async function saveModel(tf: Tf, model: LayersModel): Promise<ModelFiles> {
  let saved: io.ModelArtifacts | undefined;
  await model.save(
    tf.io.withSaveHandler(async (artifacts) => {
      saved = artifacts;
      return { modelArtifactsInfo: { dateSaved: new Date(), modelTopologyType: 'JSON' } };
    }),
  );
  const { modelTopology, weightSpecs, weightData } = saved!;
  const json = {
    format: 'layers-model',
    generatedBy: `TensorFlow.js tfjs-layers v${tf.version_layers}`,
    convertedBy: null,
    modelTopology,
    weightsManifest: [{ paths: [WEIGHTS_FILE], weights: weightSpecs }],
  };
  return {
    'model.json': new TextEncoder().encode(JSON.stringify(json)),
    'weights.bin': new Uint8Array(tf.io.CompositeArrayBuffer.join(weightData)),
  };
}

/** One weight tensor of a model. */
export interface WeightValues {
  shape: number[];
  values: Float32Array;
}

/** Returns the weights in the order of the model. Throws a SyntaxError, RangeError or TypeError if the files are not those of a model. */
export function parseWeights(topology: Uint8Array, weights: Uint8Array): WeightValues[] {
  const { weightsManifest } = JSON.parse(Buffer.from(topology).toString()) as {
    weightsManifest: io.WeightsManifestConfig;
  };
  const specs = weightsManifest.flatMap((group) => group.weights);
  const counts = specs.map(({ shape }) => shape.reduce((product, side) => product * side, 1));
  const bytes = 4 * counts.reduce((sum, count) => sum + count, 0);
  if (weights.byteLength !== bytes)
    throw new RangeError(`${WEIGHTS_FILE} has ${weights.byteLength} bytes, and its list names ${bytes}`);
  const { buffer } = Uint8Array.from(weights);
  let from = 0;
  return specs.map(({ shape }, i) => {
    const values = new Float32Array(buffer, 4 * from, counts[i]);
    from += values.length;
    return { shape, values };
  });
}

/** Loads a model. The caller must dispose it. */
export async function loadModel(tf: Tf, topology: Uint8Array, weights: Uint8Array): Promise<LayersModel> {
  const { modelTopology, weightsManifest } = JSON.parse(Buffer.from(topology).toString());
  const weightSpecs = weightsManifest.flatMap((group: io.WeightsManifestConfig[number]) => group.weights);
  // A copy, because float32 views need an aligned buffer.
  return tf.loadLayersModel(
    tf.io.fromMemory({ modelTopology, weightSpecs, weightData: Uint8Array.from(weights).buffer }),
  );
}

/** Sets all weights, in the order of the model. */
export function setWeights(tf: Tf, model: LayersModel, weights: WeightValues[]): void {
  const tensors: Tensor[] = weights.map(({ values, shape }) => tf.tensor(values, shape, 'float32'));
  model.setWeights(tensors);
  tf.dispose(tensors);
}

/** Returns a copy of all weights, in the order of the model. */
export function readWeights(model: LayersModel): WeightValues[] {
  return model
    .getWeights()
    .map((tensor) => ({ shape: tensor.shape, values: tensor.dataSync<'float32'>().slice() }));
}
