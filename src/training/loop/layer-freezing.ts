/** Which layers learn when: schedules of a model that starts from one of another place. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { ModelSpec } from '../models/index.js';
import { trainableLayers } from './learner.js';

/**
 * `all`: all layers from the start. `head`: the last layers alone, on the features of the other place. `gradual`: the last layers alone
 * for a third of the epochs, then all.
 */
export const FREEZING_SCHEDULES = ['all', 'head', 'gradual'] as const;
export type FreezingSchedule = (typeof FREEZING_SCHEDULES)[number];

/** For how many epochs the last layers learn alone. */
export function headOnlyEpochs(schedule: FreezingSchedule, epochs: number): number {
  return { all: 0, head: epochs, gradual: Math.round(epochs / 3) }[schedule];
}

/** The names of the last layers. */
export function headLayerNames({ headLayers }: ModelSpec, model: LayersModel): string[] {
  return trainableLayers(model)
    .slice(-headLayers)
    .map(({ name }) => name);
}
