/** Child process that builds an untrained model. Started by remote-untrained-model.ts. */
import { type EngineName, loadEngine, serveRequests } from '../../engines/index.js';
import { trainingFailed } from '../errors.js';
import { buildModel, getModelSpec, saveModel } from '../models/index.js';
import type { UntrainedModelHandlers } from './remote-untrained-model.js';

const [engine] = process.argv.slice(2);

serveRequests<UntrainedModelHandlers>(
  {
    async build({ model, seed }) {
      const { tf } = await loadEngine(engine as EngineName);
      return saveModel(tf, buildModel(tf, getModelSpec(model), seed));
    },
  },
  trainingFailed,
);
