/** State of a training after an epoch, from which it resumes to the same weights. */
import type { Variable } from '@tensorflow/tfjs-core';
import type { Tf } from '../../engines/index.js';
import type { EpochLosses } from '../evaluation/index.js';
import type { WarmStartResult } from '../warm-start/index.js';
import { readStateFile, writeStateFile } from './learner-state-file.js';

/** Upper bound on the seconds of training that a kill may cost, besides the current epoch. */
export const CHECKPOINT_INTERVAL_S = 5;

/** The training that a checkpoint belongs to, and its state. */
export interface CheckpointState {
  /** Identifies the task with everything that affects its result. A checkpoint of another task is not used. */
  task: string;
  losses: EpochLosses[];
  /** Selection loss before the first epoch; absent without selection patches. */
  initial?: number;
  /** Absent if there were no models to start from. */
  start?: WarmStartResult;
  /** State of the random stream. */
  random: number;
  /** Number of completed steps. */
  step: number;
  /** For a distributed training: bytes over the connections of this rank. */
  traffic?: { bytesSent: number; bytesReceived: number };
}

/** A complete checkpoint that matches the variables. Nothing is restored yet. */
interface ValidCheckpoint {
  state: CheckpointState;
  /** Restores the values of the variables. */
  restore(tf: Tf): void;
}

/** Writes the state with the values of all variables. */
export async function writeTrainingCheckpoint(
  path: string,
  state: CheckpointState,
  variables: Variable[],
): Promise<void> {
  const values = await Promise.all(variables.map((variable) => variable.data<'float32'>()));
  await writeStateFile(path, state, values);
}

/** Returns undefined if there is no complete checkpoint of `task` that matches the variables. */
export async function findCheckpoint(
  path: string,
  task: string,
  variablesOf: (state: CheckpointState) => Variable[],
): Promise<ValidCheckpoint | undefined> {
  const file = await readStateFile<CheckpointState>(path, task);
  if (!file) return undefined;
  const { state, values } = file;
  const variables = variablesOf(state);
  const expected = variables.reduce((total, { size }) => total + 4 * size, 0);
  return values.length === expected ? { state, restore: (tf) => assign(tf, variables, values) } : undefined;
}

function assign(tf: Tf, variables: Variable[], bytes: Buffer): void {
  let from = 0;
  for (const variable of variables) {
    const values = new Float32Array(variable.size);
    bytes.copy(Buffer.from(values.buffer), 0, from, from + 4 * variable.size);
    from += 4 * variable.size;
    tf.tidy(() => variable.assign(tf.tensor(values, variable.shape)));
  }
}
