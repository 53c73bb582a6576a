/** Schedules of the trainable layers for a model that starts from the model of another cell. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { ModelSpec } from '../models/index.js';
import { trainableLayers } from './learner.js';

/**
 * `all`: all layers from the start. `head`: only the last layers, on the features of the other cell. `gradual`: only the last layers for
 * a third of the epochs, then all.
 */
export const FREEZING_SCHEDULES = ['all', 'head', 'gradual'] as const;
export type FreezingSchedule = (typeof FREEZING_SCHEDULES)[number];

/** Returns the number of epochs in which only the last layers are trained. */
export function headOnlyEpochs(schedule: FreezingSchedule, epochs: number): number {
  return { all: 0, head: epochs, gradual: Math.round(epochs / 3) }[schedule];
}

export function headLayerNames({ headLayers }: ModelSpec, model: LayersModel): string[] {
  return trainableLayers(model)
    .slice(-headLayers)
    .map(({ name }) => name);
}
