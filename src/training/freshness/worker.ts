/** Child process that measures the errors of models on new dates, one place after another. Started by measurement.ts. */
import { type EngineName, loadEngine, serveRequests } from '../../engines/index.js';
import { readModelFile } from '../../storage/index.js';
import { dateErrors, lookErrors } from '../date-errors.js';
import { checkFailed } from '../errors.js';
import { getModelSpec } from '../models/builtin.js';
import { loadModel } from '../models/weights.js';
import type { CheckHandlers } from './measurement.js';

const [engine] = process.argv.slice(2);

serveRequests<CheckHandlers>(
  {
    async check({ model: { name, topology, weights }, known, fresh, heldOut, size, history }) {
      const spec = getModelSpec(name);
      if (!heldOut) return lookErrors(known, fresh);
      const { tf } = await loadEngine(engine as EngineName);
      const model = await loadModel(tf, await readModelFile(topology), await readModelFile(weights));
      try {
        return { known: [], fresh: await dateErrors(tf, model, spec, fresh, heldOut, { size, history }) };
      } finally {
        model.dispose();
      }
    },
  },
  checkFailed,
);
