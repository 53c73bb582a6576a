/** Value and gradients of a loss. */
import type { NamedTensorMap, Scalar, Tensor, Variable } from '@tensorflow/tfjs-core';
import { type CapturedKernels, captureKernels, type Tf } from '../../engines/index.js';
import type { Batch } from '../patches/index.js';

/** The gradients are in the order of the variables. The caller must dispose all tensors. */
export interface LossAndGradients {
  value: Tensor;
  gradients: Tensor[];
}

export function lossAndGradients(tf: Tf, variables: Variable[], loss: () => Tensor): LossAndGradients {
  const { value, grads } = tf.variableGrads(loss as () => Scalar, variables);
  return { value, gradients: variables.map(({ name }) => (grads as NamedTensorMap)[name]) };
}

/**
 * Computes loss and gradients for consecutive batches. `loss` may depend only on the batch and on `state`, which includes the variables;
 * on the WASM backend it is called only once for batches of the same size, and its kernel calls are replayed afterwards. Invariant:
 * `captures` has an entry for each size so far, null if it cannot be replayed.
 */
export class BatchGradients {
  private readonly captures = new Map<number, CapturedKernels | null>();

  constructor(
    private readonly tf: Tf,
    private readonly variables: Variable[],
    private readonly state: Variable[],
    private readonly loss: (batch: Batch) => Tensor,
  ) {}

  of(batch: Batch): LossAndGradients {
    const plain = () => lossAndGradients(this.tf, this.variables, () => this.loss(batch));
    const { size, inputs, targets, counts, cloud } = batch;
    const replay = this.tf.getBackend() === 'wasm' ? this.captures.get(size) : null;
    if (replay === null) return plain();
    const tensors = [inputs, targets, counts, cloud].filter((tensor) => tensor !== undefined);
    const given = [...tensors, ...this.state];
    if (replay) return lossGradients(replay.replay(given));
    const recorded = captureKernels(this.tf, given, () => {
      const { value, gradients } = plain();
      return [value, ...gradients];
    });
    this.captures.set(size, recorded.replay);
    return lossGradients(recorded.outputs);
  }

  dispose(): void {
    for (const replay of this.captures.values()) replay?.dispose();
  }
}

const lossGradients = ([value, ...gradients]: Tensor[]): LossAndGradients => ({ value, gradients });
