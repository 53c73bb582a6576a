/** The child process of `NetProcess` and of `withMappers`: trains networks, and applies stored networks to tiles. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { MadeTile } from '../../derive/index.js';
import { type EngineName, loadEngine, serveRequests, type Tf } from '../../engines/index.js';
import { loadModel } from '../../training/index.js';
import { netFailed } from '../errors.js';
import { labelCodes } from '../labels.js';
import {
  type MapTask,
  outputTileOfPlanes,
  ScaleCheck,
  type Tally,
  type TallyTask,
  tallyOfPlanes,
} from '../output-tile.js';
import { eachPatch, NetCompute } from './compute.js';
import { centreOf, type NetMethod } from './net.js';
import type { NetHandlers } from './session.js';

/** Pixels of one batch of the engine. */
const BATCH_PIXELS = 256;
/** Distance between pixels whose scale is checked. */
const SCALE_CHECK_INTERVAL_PX = 64;

/** Invariant: `known.model` is the model of the files with `known.weights`. */
class NetMapper {
  private known: { weights: Uint8Array; model: LayersModel } | undefined;

  constructor(private readonly tf: Tf) {}

  /** Returns null if no pixel is clear and has data in every band. Throws TW_IMAGERY_TILE_FILE and TW_ANALYSIS_OTHER_SCALE. */
  async map(task: MapTask<NetMethod>): Promise<MadeTile | null> {
    const model = await this.modelOf(task.method);
    return outputTileOfPlanes(task, planesOf(this.tf, model, task));
  }

  /** Returns null if the tile has no label and need not be mapped. Throws TW_IMAGERY_TILE_FILE and TW_ANALYSIS_OTHER_SCALE. */
  async tally(task: TallyTask<NetMethod>): Promise<Tally | null> {
    const codes = labelCodes(task.labels, task.cell, task.file);
    if (!task.mapsAll && codes.every((code) => code === 0)) return null;
    return tallyOfPlanes(task, codes, planesOf(this.tf, await this.modelOf(task.method), task));
  }

  private async modelOf({ files }: NetMethod): Promise<LayersModel> {
    const weights = files['weights.bin'];
    if (this.known && Buffer.compare(this.known.weights, weights) === 0) return this.known.model;
    this.known?.model.dispose();
    this.known = { weights, model: await loadModel(this.tf, files['model.json'], weights) };
    return this.known.model;
  }
}

/** One plane for each class; NaN for pixels that are not clear or have no value. */
function planesOf(
  tf: Tf,
  model: LayersModel,
  {
    file,
    around = [],
    method,
    checksScale,
  }: Pick<MapTask<NetMethod>, 'file' | 'around' | 'method' | 'checksScale'>,
): Float32Array[] {
  const { side, classes } = method;
  const planes = Array.from({ length: classes }, () => new Float32Array(file.width * file.height).fill(NaN));
  const bands = file.bands.length;
  const shape = side === 1 ? [BATCH_PIXELS, bands] : [BATCH_PIXELS, side, side, bands];
  const values = new Float32Array(BATCH_PIXELS * side * side * bands);
  const pixels = new Int32Array(BATCH_PIXELS);
  const centre = centreOf(model);
  const check = checksScale ? new ScaleCheck(centre) : undefined;
  const centreAt = ((side * side - 1) / 2) * bands;
  let count = 0;
  const finish = () => {
    if (count === 0) return;
    const shares = tf.tidy(() => (model.predict(tf.tensor(values, shape)) as Tensor).dataSync());
    for (let i = 0; i < count; i++)
      for (let c = 0; c < classes; c++) planes[c][pixels[i]] = shares[i * classes + c];
    count = 0;
  };
  eachPatch(file, around, { side, missing: centre }, (pixel, patch) => {
    if (count % SCALE_CHECK_INTERVAL_PX === 0) check?.add(patch.subarray(centreAt, centreAt + bands));
    pixels[count] = pixel;
    values.set(patch, count * patch.length);
    if (++count === BATCH_PIXELS) finish();
  });
  finish();
  check?.finish();
  return planes;
}

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
    map: async (task) => (await mapperOf()).map(task),
    tally: async (task) => (await mapperOf()).tally(task),
  },
  netFailed,
);

async function mapperOf(): Promise<NetMapper> {
  mapper ??= new NetMapper(await tfOf());
  return mapper;
}

async function tfOf(): Promise<Tf> {
  return (await loadEngine(engine as EngineName)).tf;
}

function withWeights(weights: Float32Array): NetCompute {
  if (!compute) throw new Error('the request "begin" is missing');
  compute.setWeights(weights);
  return compute;
}
