/** The child process that builds a model and trains nothing. Started by untrained-model.ts. */
import { type EngineName, loadEngine, serveRequests } from '../../engines/index.js';
import { trainingFailed } from '../errors.js';
import { buildModel } from '../models/build-model.js';
import { modelNamed } from '../models/builtin-models.js';
import { saveModel } from '../registry/saved-model.js';
import type { BlankModelHandlers } from './untrained-model.js';

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
