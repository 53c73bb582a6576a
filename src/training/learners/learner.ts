/** Trains a model batch by batch. */
import type { Tensor, Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Batch } from '../patches/index.js';

export interface StepOptions {
  learningRate: number;
  /** Number of the step, from 1. */
  step: number;
  /** Replaces local gradients by their weighted mean over all nodes. Disposes the tensors passed in. */
  reduceGradients?: (gradients: Tensor[]) => Promise<Tensor[]>;
}

export interface Learner {
  /** The model that is saved in the end. */
  readonly model: LayersModel;
  /** Updates the weights by one batch, and resolves to the loss before the update. */
  step(batch: Batch, options: StepOptions): Promise<number>;
  /** Trains only the layers with these names from now on, or all layers without names. Step numbers restart. */
  setTrainableLayers(layers?: string[]): void;
  /** All variables that later steps depend on, in an order that is fixed for the same trainable layers. */
  stateVariables(): Variable[];
  /** Disposes everything except the model. */
  dispose(): void;
}

/** Returns the layers with trainable weights. */
export function trainableLayers(model: LayersModel): LayersModel['layers'] {
  return model.layers.filter((layer) => layer.trainable && layer.weights.length > 0);
}

/** Freezes all layers except those with these names; without names, none. */
export function freezeAllExcept(layers: LayersModel['layers'], names?: string[]): void {
  for (const layer of layers) layer.trainable = names?.includes(layer.name) ?? true;
}

/** Returns the variables of weights, trainable or not. */
export function asVariables(weights: LayersModel['weights']): Variable[] {
  return weights.map((weight) => weight.read() as Variable);
}
