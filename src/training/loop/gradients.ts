/** Value and gradients of a loss. */
import type { NamedTensorMap, Scalar, Tensor, Variable } from '@tensorflow/tfjs-core';
import { type Replay, record, type Tf } from '../../engines/index.js';
import type { Batch } from './learner.js';

/** The gradients are in the order of the variables. All are the caller's to dispose. */
export interface LossGradients {
  value: Tensor;
  gradients: Tensor[];
}

export function gradientsOf(tf: Tf, variables: Variable[], loss: () => Tensor): LossGradients {
  const { value, grads } = tf.variableGrads(loss as () => Scalar, variables);
  return { value, gradients: variables.map(({ name }) => (grads as NamedTensorMap)[name]) };
}

/**
 * The same for one batch after another. `loss` may depend on the batch and on `state` alone, to which the variables belong; on the WASM
 * backend it is then asked only once for batches of one size. Invariant: `replays` has all sizes that were seen, null for those
 * that cannot be replayed.
 */
export class BatchGradients {
  private readonly replays = new Map<number, Replay | null>();

  constructor(
    private readonly tf: Tf,
    private readonly variables: Variable[],
    private readonly state: Variable[],
    private readonly loss: (batch: Batch) => Tensor,
  ) {}

  of(batch: Batch): LossGradients {
    const plain = () => gradientsOf(this.tf, this.variables, () => this.loss(batch));
    const { size, inputs, targets, counts, cloud } = batch;
    const replay = this.tf.getBackend() === 'wasm' ? this.replays.get(size) : null;
    if (replay === null) return plain();
    const tensors = [inputs, targets, counts, cloud].filter((tensor) => tensor !== undefined);
    const given = [...tensors, ...this.state];
    if (replay) return lossGradients(replay.run(given));
    const recorded = record(this.tf, given, () => {
      const { value, gradients } = plain();
      return [value, ...gradients];
    });
    this.replays.set(size, recorded.replay);
    return lossGradients(recorded.outputs);
  }

  dispose(): void {
    for (const replay of this.replays.values()) replay?.dispose();
  }
}

const lossGradients = ([value, ...gradients]: Tensor[]): LossGradients => ({ value, gradients });
