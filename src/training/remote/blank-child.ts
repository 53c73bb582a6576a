/** The child process that builds a model and trains nothing. Started by blank-model.ts. */
import { type EngineName, loadEngine } from '../engine/load-engine.js';
import { trainingFailed } from '../errors.js';
import { buildModel } from '../models/build.js';
import { modelNamed } from '../models/index.js';
import { saveModel } from '../weights.js';
import { serveRequests } from '../workers/serve-requests.js';
import type { BlankModelHandlers } from './blank-model.js';

const [engine] = process.argv.slice(2);

serveRequests<BlankModelHandlers>(
  {
    async build({ model, seed }) {
      const { tf } = await loadEngine(engine as EngineName);
      return saveModel(tf, buildModel(tf, modelNamed(model), seed));
    },
  },
  trainingFailed,
);
