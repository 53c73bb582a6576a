/** Early stopping: the weights of the epoch with the lowest loss on the selection patches are kept. */
import type { Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { EpochLosses } from '../evaluation/index.js';
import { asVariables } from './learner.js';

/**
 * Returns the epoch with the lowest selection loss, the earliest of equals; 0 if none is lower than `initial`, the loss before the first
 * epoch. Without selection patches it is the last epoch.
 */
export function bestEpoch(losses: EpochLosses[], initial?: number): number {
  const last = losses.at(-1);
  if (last && last.selection === undefined) return last.epoch;
  // Checkpoints have null instead of NaN and infinity.
  let best = { epoch: 0, loss: Number.isFinite(initial) ? initial! : Infinity };
  for (const { epoch, selection = Infinity } of losses)
    if (selection < best.loss) best = { epoch, loss: selection };
  return best.epoch;
}

/** True if the selection loss has not improved for `patience` epochs. */
export function hasStalled(losses: EpochLosses[], initial?: number, patience = Infinity): boolean {
  const last = losses.at(-1);
  return last?.selection !== undefined && last.epoch - bestEpoch(losses, initial) >= patience;
}

/** A copy of the weights of a model on the engine. Checkpoints save its variables with those of the learner. */
export class WeightsSnapshot {
  readonly variables: Variable[];
  private readonly own: Variable[];

  constructor(tf: Tf, model: LayersModel) {
    this.own = asVariables(model.weights);
    this.variables = this.own.map((weight) => tf.variable(weight, false));
  }

  save(): void {
    this.variables.forEach((copy, i) => {
      copy.assign(this.own[i]);
    });
  }

  /** Restores the weights of the last `save`. */
  restore(): void {
    this.own.forEach((weight, i) => {
      weight.assign(this.variables[i]);
    });
  }

  dispose(): void {
    for (const variable of this.variables) variable.dispose();
  }
}
