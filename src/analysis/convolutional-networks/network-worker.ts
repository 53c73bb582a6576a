/** The child process of `NetProcess`. */
import { type EngineName, loadEngine, serveRequests, type Tf } from '../../engines/index.js';
import { netFailed } from '../errors.js';
import { NetMapper } from './apply-network.js';
import type { NetHandlers } from './network-processes.js';
import { NetCompute } from './network-runtime.js';

const [engine] = process.argv.slice(2);
let begun: NetCompute | undefined;
let mapper: NetMapper | undefined;

serveRequests<NetHandlers>(
  {
    async begin({ shape, tiles }) {
      begun = new NetCompute(await tfOf(), shape);
      begun.holdTiles(tiles);
      return begun.parameters;
    },
    gradients: async ({ weights, groups }) => {
      const compute = withWeights(weights);
      return groups.map((group) => compute.gradientOf(group));
    },
    values: async ({ weights, groups }) => {
      const compute = withWeights(weights);
      return groups.map((group) => compute.valuesOf(group));
    },
    cams: async ({ weights, groups }) => {
      const compute = withWeights(weights);
      return groups.map((group) => compute.camsOf(group));
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
  if (!begun) throw new Error('no network has begun');
  begun.setWeights(weights);
  return begun;
}
