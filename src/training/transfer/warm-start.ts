/** Where the training of a place starts: fresh, or with the weights of a model of another place. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { ModelFilePlace } from '../../storage/index.js';
import { meanSquaredError } from '../inference/predict-patches.js';
import { type PatchDataset, type PatchSet, somePatches } from '../patches/patches.js';
import { type WeightValues, weightsOf } from '../registry/saved-model.js';
import { adaptNorms } from './adapt-batch-norm.js';
import { fitLine, shiftOutput } from './refit-output-layers.js';

/** A model of another place, by its files. */
export interface ParentFiles {
  id: string;
  version: string;
  topology: ModelFilePlace;
  weights: ModelFilePlace;
}

/** What a model may start from. */
export interface StartTask {
  /** Where they are probed the best is taken, or else the first that fits. */
  parents: ParentFiles[];
  /** Compares them with each other and with a fresh model, on some of the training patches. */
  probe: boolean;
}

export interface Start {
  /** Absent where it started fresh. */
  parent?: { id: string; version: string };
  /** What was compared, by the mean squared error on the probe; the fresh model without an id. */
  probed?: { id?: string; mse: number }[];
  /** Models that cannot be taken, and why. */
  refused?: { id: string; reason: string }[];
}

/** Pixels of patches that parents are compared on: enough to tell them apart, and a small part of an epoch. */
const PROBED_PIXELS = 2 ** 14;
/** At least so many patches, as the pixels of one are much alike. */
const PROBED_PATCHES = 16;
/** Pixels of patches that the output layers of a parent are adapted to. */
const ADAPTED_PIXELS = 2 ** 16;
const NO_WEIGHTS = [SyntaxError, RangeError, TypeError];

/**
 * Puts the weights of a parent into a fresh model, and adapts it to the training patches: the averages of its normalisations, then its
 * output layers. If parents are compared, each and the fresh one are adapted to some training patches, and the errors are those on
 * some selection patches, which are other ground. A parent whose files are damaged,
 * that cannot be read, whose layers are others, or that says no numbers of this place is refused, which leaves the model as it was.
 */
export async function startFrom(
  tf: Tf,
  model: LayersModel,
  { train, selection }: Pick<PatchDataset, 'train' | 'selection'>,
  { parents, probe }: StartTask,
): Promise<Start> {
  const refused: NonNullable<Start['refused']> = [];
  const patchesOf = (pixels: number) => Math.ceil(pixels / train.size ** 2);
  const some = (set: PatchSet) => somePatches(set, Math.max(PROBED_PATCHES, patchesOf(PROBED_PIXELS)) / 2);
  const known = some(train);
  const unknown = some(selection ?? train);
  const adapt = (values: WeightValues[], patches: PatchSet) => {
    setWeights(tf, model, values);
    adaptNorms(tf, model, patches);
    shiftOutput(tf, model, somePatches(patches, patchesOf(ADAPTED_PIXELS)));
  };
  const fresh = model.getWeights().map((tensor) => tensor.clone());
  const probed: NonNullable<Start['probed']> = [];
  if (probe) {
    fitLine(tf, model, known);
    probed.push({ mse: meanSquaredError(tf, model, unknown) });
  }
  let best: { parent?: ParentFiles; values?: WeightValues[]; mse: number } = {
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
  { topology, weights }: ParentFiles,
  model: LayersModel,
): Promise<{ values: WeightValues[] } | { reason: string }> {
  try {
    // Loaded here, because its imports would be much of the start of a process whose place starts fresh.
    const { readModelFile } = await import('../../storage/index.js');
    const values = weightsOf(await readModelFile(topology), await readModelFile(weights));
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
    if (!NO_WEIGHTS.some((kind) => error instanceof kind)) throw error;
    return { reason: `its files are those of no model: ${messageOf(error)}` };
  }
}

function setWeights(tf: Tf, model: LayersModel, values: WeightValues[]): void {
  const tensors: Tensor[] = values.map(({ values, shape }) => tf.tensor(values, shape, 'float32'));
  model.setWeights(tensors);
  tf.dispose(tensors);
}
