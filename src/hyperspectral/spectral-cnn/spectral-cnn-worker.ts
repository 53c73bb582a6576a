/** The child process of `NetProcess` and of `withMappers`. */
import { type EngineName, loadEngine, serveRequests, type Tf } from '../../engines/index.js';
import { netFailed } from '../errors.js';
import { NetMapper } from './apply-spectral-cnn.js';
import { NetCompute } from './spectral-cnn-runtime.js';
import type { NetHandlers } from './spectral-cnn-workers.js';

const [engine] = process.argv.slice(2);
let compute: NetCompute | undefined;
let mapper: NetMapper | undefined;

serveRequests<NetHandlers>(
  {
    async begin({ shape, tiles }) {
      compute = new NetCompute(await tfOf(), shape);
      compute.holdTiles(tiles);
      return compute.parameters;
    },
    gradients: async ({ weights, groups }) => {
      const net = withWeights(weights);
      return groups.map((group) => net.gradientOf(group));
    },
    values: async ({ weights, groups }) => {
      const net = withWeights(weights);
      return groups.map((group) => net.valuesOf(group));
    },
    cams: async ({ weights, groups }) => {
      const net = withWeights(weights);
      return groups.map((group) => net.camsOf(group));
    },
    files: async ({ weights, standard }) => withWeights(weights).files(standard),
    async map(task) {
      mapper ??= new NetMapper(await tfOf());
      return mapper.map(task);
    },
  },
  netFailed,
);

async function tfOf(): Promise<Tf> {
  return (await loadEngine(engine as EngineName)).tf;
}

function withWeights(weights: Float32Array): NetCompute {
  if (!compute) throw new Error('the request "begin" is missing');
  compute.setWeights(weights);
  return compute;
}
