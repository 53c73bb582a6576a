/** Child process that applies models to one tile after another on one engine. Started by predict-pool.ts. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { type EngineName, loadEngine, serveRequests, type Tf } from '../../engines/index.js';
import { readModelFile } from '../../storage/index.js';
import { predictionFailed } from '../errors.js';
import { getModelSpec, loadModel } from '../models/index.js';
import type { PredictionHandlers } from './predict-pool.js';
import type { PredictTask } from './predict-task.js';
import { predictTile } from './predict-tile.js';

const [engine] = process.argv.slice(2);
/** The last model, because consecutive tiles are often of one cell. */
let cachedModel: { topology: string; model: LayersModel } | undefined;

serveRequests<PredictionHandlers>(
  {
    async predict(task) {
      const { tf } = await loadEngine(engine as EngineName);
      return predictTile(tf, await modelOf(tf, task.model), getModelSpec(task.model.name), task);
    },
  },
  predictionFailed,
);

async function modelOf(tf: Tf, { topology, weights }: PredictTask['model']): Promise<LayersModel> {
  if (cachedModel?.topology === topology.path) return cachedModel.model;
  cachedModel?.model.dispose();
  cachedModel = undefined;
  const model = await loadModel(tf, await readModelFile(topology), await readModelFile(weights));
  cachedModel = { topology: topology.path, model };
  return model;
}
