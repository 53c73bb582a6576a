/** What trains a model, batch by batch. */
import type { Tensor, Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Batch } from '../patches/index.js';

/**
 * Gradients as they are applied: of all nodes that train the model together, their weighted mean. The tensors that go in are
 * disposed.
 */
export type ReduceGradients = (gradients: Tensor[]) => Promise<Tensor[]>;

export interface StepOptions {
  /** Size of the step. */
  learningRate: number;
  /** Its number, from 1. */
  step: number;
  reduceGradients?: ReduceGradients;
}

export interface Learner {
  /** What is saved in the end. */
  readonly model: LayersModel;
  /** Moves the weights by one batch, and resolves to its loss before that. */
  step(batch: Batch, options: StepOptions): Promise<number>;
  /** From now on the layers of these names learn alone, or all without names; steps are counted anew. */
  setTrainableLayers(layers?: string[]): void;
  /** All that later steps depend on, in an order that is fixed for the layers that learn. */
  stateVariables(): Variable[];
  /** All but the model. */
  dispose(): void;
}

/** The layers that are trained where none is held. */
export function trainableLayers(model: LayersModel): LayersModel['layers'] {
  return model.layers.filter((layer) => layer.trainable && layer.weights.length > 0);
}

/** Holds all layers but those of these names; none without names. */
export function freezeAllExcept(layers: LayersModel['layers'], names?: string[]): void {
  for (const layer of layers) layer.trainable = names?.includes(layer.name) ?? true;
}

/** The variables of a model's weights, trained or not. */
export function asVariables(weights: LayersModel['weights']): Variable[] {
  return weights.map((weight) => weight.read() as Variable);
}
