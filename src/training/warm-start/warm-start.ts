/** Start of a training: a fresh model, or the weights of the model of another cell. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { ModelFileLocation } from '../../storage/index.js';
import { meanSquaredError } from '../evaluation/index.js';
import { parseWeights, setWeights, type WeightValues } from '../models/index.js';
import { type Patches, subsamplePatches, type TrainValidationPatches } from '../patches/index.js';
import { adaptBatchNorm } from './warm-start-batch-norm.js';
import { refitLinearLayer, refitOutputLayers } from './warm-start-output-layers.js';

/** Files of a model of another cell. */
export interface SourceModelFiles {
  id: string;
  version: string;
  topology: ModelFileLocation;
  weights: ModelFileLocation;
}

/** Models from which a training may start. */
export interface WarmStartOptions {
  /** With `probe` the best is used, otherwise the first that matches. */
  parents: SourceModelFiles[];
  /** Compares the models with each other and with a fresh one, on some of the training patches. */
  probe: boolean;
}

export interface WarmStartResult {
  /** Absent if it started fresh. */
  parent?: { id: string; version: string };
  /** The compared models with their mean squared errors; the fresh model has no id. */
  probed?: { id?: string; mse: number }[];
  /** Models that could not be used, with the reasons. */
  refused?: { id: string; reason: string }[];
}

/** Number of pixels on which models are compared: enough to distinguish them, and a small part of an epoch. */
const PROBE_PIXELS = 2 ** 14;
/** Minimum number of patches, because the pixels of one patch are similar. */
const MIN_PROBED_PATCHES = 16;
/** Number of pixels to which the output layers are adapted. */
const ADAPTATION_PIXELS = 2 ** 16;
const UNREADABLE_WEIGHTS_ERRORS = [SyntaxError, RangeError, TypeError];

/**
 * Copies the weights of a parent into a fresh model, and adapts it to the training patches: first batch normalisation, then the output
 * layers. With `probe`, each parent and the fresh model are adapted to some training patches and compared on some selection patches,
 * which lie on other ground. A parent is refused if its files are damaged or unreadable, if its layers differ, or if its predictions for
 * this cell are not finite; the model is then unchanged.
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
      const read = await readSourceWeights(parent, model);
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

/** Reads the weights of a model that another job or cell has trained, or returns the reason why `model` cannot have them. */
export async function readSourceWeights(
  { topology, weights }: SourceModelFiles,
  model: LayersModel,
): Promise<{ values: WeightValues[] } | { reason: string }> {
  try {
    // Imported here, because it would slow down the start of processes whose cells start fresh.
    const { readModelFile } = await import('../../storage/index.js');
    const values = parseWeights(await readModelFile(topology), await readModelFile(weights));
    const own = model.weights;
    const fits =
      values.length === own.length && values.every(({ shape }, i) => String(shape) === String(own[i].shape));
    if (!fits) return { reason: 'its layers differ' };
    if (!values.every(({ values }) => values.every(Number.isFinite)))
      return { reason: 'a weight is not finite' };
    return { values };
  } catch (error) {
    if (error instanceof TilewrightError) return { reason: error.message };
    // Errors of `parseWeights` for files that are not the files of a model.
    if (!UNREADABLE_WEIGHTS_ERRORS.some((kind) => error instanceof kind)) throw error;
    return { reason: `its files are not those of a model: ${messageOf(error)}` };
  }
}
