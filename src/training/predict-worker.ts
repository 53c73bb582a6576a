/** Child process that applies models to one tile after another on one engine. Started by predict-process.ts. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { type EngineName, loadEngine, serveRequests, type Tf } from '../engines/index.js';
import { readModelFile } from '../storage/index.js';
import { predictionFailed } from './errors.js';
import type { ModelFiles } from './halo.js';
import { getModelSpec } from './models/builtin.js';
import { loadModel } from './models/weights.js';
import type { PredictionHandlers } from './predict-process.js';
import { predictTile } from './predict-tile.js';
import { PriorFits } from './prior.js';
import { tileErrors } from './tile-errors.js';

const [engine] = process.argv.slice(2);
/** Models by the path of their topology, the least recently used first: a tile needs those of its neighbours, too. */
const models = new Map<string, LayersModel>();
const MAX_MODELS = 64;
const fits = new PriorFits();

serveRequests<PredictionHandlers>(
  {
    async score(task) {
      const { tf } = await loadEngine(engine as EngineName);
      return tileErrors(tf, getModelSpec(task.model.name), task, (files) => modelOf(tf, files));
    },
    async predict(task) {
      const { tf } = await loadEngine(engine as EngineName);
      return predictTile(tf, getModelSpec(task.model.name), task, (files) => modelOf(tf, files), fits);
    },
  },
  predictionFailed,
);

async function modelOf(tf: Tf, { topology, weights }: ModelFiles): Promise<LayersModel> {
  const model =
    models.get(topology.path) ??
    (await loadModel(tf, await readModelFile(topology), await readModelFile(weights)));
  models.delete(topology.path);
  models.set(topology.path, model);
  for (const [path, oldest] of models) {
    if (models.size <= MAX_MODELS) break;
    models.delete(path);
    oldest.dispose();
  }
  return model;
}
