/** How a model came to the weights that its training started from, as its card records it. */
import type { FreezingSchedule } from '../learners/index.js';
import type { WarmStartResult } from '../warm-start/index.js';

/**
 * The model that the training of a cell starts from. `none`: it starts fresh. `random`: the model of a cell of another cluster, as a
 * control. `similar`: the model of the most similar cell of its cluster. `probe`: the best on some of the patches of the cell, among the
 * models of several similar cells and a fresh one.
 */
export const TRANSFER_POLICIES = ['none', 'random', 'similar', 'probe'] as const;
export type TransferPolicy = (typeof TRANSFER_POLICIES)[number];

export interface TransferProvenance extends Omit<WarmStartResult, 'parent'> {
  policy: Exclude<TransferPolicy, 'none'>;
  fineTuning: FreezingSchedule;
  /** Version of the parent. */
  version?: string;
  /** Texture distance between the cell and the cell of the parent, as in `TextureIndex`. */
  distance?: number;
  /** The reason why it started fresh. */
  fresh?: string;
}
