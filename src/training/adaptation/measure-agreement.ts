/** Measures whether two halves of the training patches of a cell change the base model in the same way. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { predictPatches } from '../inference/index.js';
import { type ModelSpec, setWeights, type WeightValues } from '../models/index.js';
import { type Patches, selectPatches, type TrainValidationPatches } from '../patches/index.js';
import type { UpdateAgreement } from './adaptation-shrinkage.js';
import { fineTuneBase } from './fine-tune-base.js';

/**
 * Fine-tunes the base on each half, and compares how the predictions for the selection patches change, which neither half contains.
 * Training patches are in the order of their dates, and those of one date from north to south: the halves have different dates, or
 * different ground if there is only one. So an update that only suits some dates counts as noise.
 */
export async function measureAgreement(
  tf: Tf,
  spec: ModelSpec,
  base: WeightValues[],
  model: LayersModel,
  { train, selection = train }: Pick<TrainValidationPatches, 'train' | 'selection'>,
  { epochs, seed }: { epochs: number; seed: number },
): Promise<UpdateAgreement> {
  const half = Math.floor(train.count / 2);
  const predict = (weights: WeightValues[]) => {
    setWeights(tf, model, weights);
    return predictPatches(tf, model, selection);
  };
  const start = predict(base);
  const changes: Float32Array[] = [];
  for (const [i, [from, to]] of [
    [0, half],
    [train.count - half, train.count],
  ].entries()) {
    const tuned = await fineTuneBase(tf, spec, base, range(train, from, to), { epochs, seed: seed + i });
    changes.push(predict(tuned).map((value, k) => value - start[k]));
  }
  return { patches: train.count, half, agreement: agreementOf(changes[0], changes[1], selection) };
}

function range(patches: Patches, from: number, to: number): Patches {
  return selectPatches(
    patches,
    Array.from({ length: to - from }, (_, i) => from + i),
  );
}

/** Sum of products over the mean of the sums of squares, over the values that count. 0 if nothing changes. */
function agreementOf(a: Float32Array, b: Float32Array, { targetMask, targetBands }: Patches): number {
  let products = 0;
  let squares = 0;
  for (let i = 0; i < a.length; i++) {
    if (targetMask && !targetMask[Math.floor(i / targetBands)]) continue;
    products += a[i] * b[i];
    squares += (a[i] ** 2 + b[i] ** 2) / 2;
  }
  return squares > 0 ? products / squares : 0;
}
