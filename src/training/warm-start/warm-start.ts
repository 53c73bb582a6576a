/** Where the training of a place starts: fresh, or with the weights of a model of another place. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { ModelFileLocation } from '../../storage/index.js';
import { meanSquaredError } from '../evaluation/index.js';
import { parseWeights, type WeightValues } from '../models/index.js';
import { type Patches, subsamplePatches, type TrainValidationPatches } from '../patches/index.js';
import { adaptBatchNorm } from './adapt-batch-norm.js';
import { refitLinearLayer, refitOutputLayers } from './refit-output-layers.js';

/** A model of another place, by its files. */
export interface SourceModelFiles {
  id: string;
  version: string;
  topology: ModelFileLocation;
  weights: ModelFileLocation;
}

/** What a model may start from. */
export interface WarmStartOptions {
  /** Where they are probed the best is taken, or else the first that fits. */
  parents: SourceModelFiles[];
  /** Compares them with each other and with a fresh model, on some of the training patches. */
  probe: boolean;
}

export interface WarmStartResult {
  /** Absent where it started fresh. */
  parent?: { id: string; version: string };
  /** What was compared, by the mean squared error on the probe; the fresh model without an id. */
  probed?: { id?: string; mse: number }[];
  /** Models that cannot be taken, and why. */
  refused?: { id: string; reason: string }[];
}

/** Pixels of patches that parents are compared on: enough to tell them apart, and a small part of an epoch. */
const PROBE_PIXELS = 2 ** 14;
/** At least so many patches, as the pixels of one are much alike. */
const MIN_PROBED_PATCHES = 16;
/** Pixels of patches that the output layers of a parent are adapted to. */
const ADAPTATION_PIXELS = 2 ** 16;
const UNREADABLE_WEIGHTS_ERRORS = [SyntaxError, RangeError, TypeError];

/**
 * Puts the weights of a parent into a fresh model, and adapts it to the training patches: the averages of its normalisations, then its
 * output layers. If parents are compared, each and the fresh one are adapted to some training patches, and the errors are those on
 * some selection patches, which are other ground. A parent whose files are damaged,
 * that cannot be read, whose layers are others, or that says no numbers of this place is refused, which leaves the model as it was.
 */
export async function warmStart(
  tf: Tf,
  model: LayersModel,
  { train, selection }: Pick<TrainValidationPatches, 'train' | 'selection'>,
  { parents, probe }: WarmStartOptions,
): Promise<WarmStartResult> {
  const refused: NonNullable<WarmStartResult['refused']> = [];
  const patchesOf = (pixels: number) => Math.ceil(pixels / train.size ** 2);
  const some = (set: Patches) =>
    subsamplePatches(set, Math.max(MIN_PROBED_PATCHES, patchesOf(PROBE_PIXELS)) / 2);
  const known = some(train);
  const unknown = some(selection ?? train);
  const adapt = (values: WeightValues[], patches: Patches) => {
    setWeights(tf, model, values);
    adaptBatchNorm(tf, model, patches);
    refitOutputLayers(tf, model, subsamplePatches(patches, patchesOf(ADAPTATION_PIXELS)));
  };
  const fresh = model.getWeights().map((tensor) => tensor.clone());
  const probed: NonNullable<WarmStartResult['probed']> = [];
  if (probe) {
    refitLinearLayer(tf, model, known);
    probed.push({ mse: meanSquaredError(tf, model, unknown) });
  }
  let best: { parent?: SourceModelFiles; values?: WeightValues[]; mse: number } = {
    mse: probed[0]?.mse ?? Infinity,
  };
  try {
    for (const parent of parents) {
      const { id } = parent;
      const read = await valuesOf(parent, model);
      if ('reason' in read) {
        refused.push({ id, reason: read.reason });
        continue;
      }
      adapt(read.values, probe ? known : train);
      const mse = meanSquaredError(tf, model, unknown);
      if (!Number.isFinite(mse)) {
        refused.push({ id, reason: 'its predictions for this place are not finite' });
        continue;
      }
      if (probe) probed.push({ id, mse });
      if (mse < best.mse) best = { parent, ...read, mse };
      if (!probe) break;
    }
    const { parent, values } = best;
    if (!values) model.setWeights(fresh);
    else if (probe) adapt(values, train);
    return {
      ...(parent && { parent: { id: parent.id, version: parent.version } }),
      ...(probed.length > 1 && { probed }),
      ...(refused.length > 0 && { refused }),
    };
  } finally {
    tf.dispose(fresh);
  }
}

async function valuesOf(
  { topology, weights }: SourceModelFiles,
  model: LayersModel,
): Promise<{ values: WeightValues[] } | { reason: string }> {
  try {
    // Loaded here, because its imports would be much of the start of a process whose place starts fresh.
    const { readModelFile } = await import('../../storage/index.js');
    const values = parseWeights(await readModelFile(topology), await readModelFile(weights));
    const own = model.weights;
    const fits =
      values.length === own.length && values.every(({ shape }, i) => String(shape) === String(own[i].shape));
    if (!fits) return { reason: 'its layers are others' };
    if (!values.every(({ values }) => values.every(Number.isFinite)))
      return { reason: 'a weight of it is no number' };
    return { values };
  } catch (error) {
    if (error instanceof TilewrightError) return { reason: error.message };
    // What weightsOf says of bytes that are none.
    if (!UNREADABLE_WEIGHTS_ERRORS.some((kind) => error instanceof kind)) throw error;
    return { reason: `its files are those of no model: ${messageOf(error)}` };
  }
}

function setWeights(tf: Tf, model: LayersModel, values: WeightValues[]): void {
  const tensors: Tensor[] = values.map(({ values, shape }) => tf.tensor(values, shape, 'float32'));
  model.setWeights(tensors);
  tf.dispose(tensors);
}
