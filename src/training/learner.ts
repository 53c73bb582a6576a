/** What trains a model, batch by batch. */
import type { Tensor, Tensor4D, Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';

/** Samples of one step. Shapes as in `PatchSet`; `counts` and `cloud` with one channel. */
export interface Batch {
  size: number;
  inputs: Tensor4D;
  targets: Tensor;
  counts?: Tensor4D;
  cloud?: Tensor4D;
}

/**
 * Gradients as they are applied: of all nodes that train the model together, their weighted mean. The tensors that go in are
 * disposed.
 */
export type ShareGradients = (gradients: Tensor[]) => Promise<Tensor[]>;

export interface StepOptions {
  /** Size of the step. */
  rate: number;
  /** Its number, from 1. */
  step: number;
  share?: ShareGradients;
}

export interface Learner {
  /** What is saved in the end. */
  readonly model: LayersModel;
  /** Moves the weights by one batch, and resolves to its loss before that. */
  step(batch: Batch, options: StepOptions): Promise<number>;
  /** All that later steps depend on, in a fixed order. */
  state(): Variable[];
  /** All but the model. */
  dispose(): void;
}

/** The variables of a model's weights, trained or not. */
export function variablesOf(weights: LayersModel['weights']): Variable[] {
  return weights.map((weight) => weight.read() as Variable);
}
