/** A model as files: what `tf.loadLayersModel` opens, here and in a browser. */
import type { io } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';

const WEIGHTS_FILE = 'weights.bin';

/** Topology and list of weights; the weights themselves, float32 little-endian one after another. */
export interface ModelFiles extends Record<string, Uint8Array> {
  'model.json': Uint8Array;
  'weights.bin': Uint8Array;
}

/** For inference: without the optimiser's state. */
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

/** One of a model's weights, in the order in which the model has them. */
export interface WeightValues {
  shape: number[];
  values: Float32Array;
}

/** The weights of such files. Throws a SyntaxError, RangeError or TypeError where they are none. */
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

/** The model of such files. Dispose it when done. */
export async function loadModel(tf: Tf, topology: Uint8Array, weights: Uint8Array): Promise<LayersModel> {
  const { modelTopology, weightsManifest } = JSON.parse(Buffer.from(topology).toString());
  const weightSpecs = weightsManifest.flatMap((group: io.WeightsManifestConfig[number]) => group.weights);
  // Weights are read in place: they must begin where a float may.
  return tf.loadLayersModel(
    tf.io.fromMemory({ modelTopology, weightSpecs, weightData: Uint8Array.from(weights).buffer }),
  );
}
