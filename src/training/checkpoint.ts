/** Training as it stands after an epoch: enough to go on from there to the same weights. */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { Variable } from '@tensorflow/tfjs-core';
import type { Tf } from './engine/tf.js';
import type { EpochLoss } from './train-model.js';

/** What a checkpoint belongs to, and how far it is. */
export interface CheckpointState {
  /** Names the task with all that shapes its result; a checkpoint of another is not used. */
  task: string;
  losses: EpochLoss[];
  /** Of the random stream. */
  random: number;
  /** Steps taken. */
  step: number;
}

/** A line of JSON, then the values of all variables, float32. */
export async function writeCheckpoint(
  path: string,
  state: CheckpointState,
  variables: Variable[],
): Promise<void> {
  const values = await Promise.all(variables.map((variable) => variable.data<'float32'>()));
  const bytes = Buffer.concat(
    values.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
  );
  const head = Buffer.from(`${JSON.stringify({ ...state, crc32: crc32(bytes) })}\n`);
  await writeFile(`${path}.new`, Buffer.concat([head, bytes]));
  await rename(`${path}.new`, path);
}

/** Puts the values back into the variables. Undefined, and nothing changed, where there is no whole checkpoint of `task`. */
export async function readCheckpoint(
  tf: Tf,
  path: string,
  task: string,
  variablesOf: (state: CheckpointState) => Variable[],
): Promise<CheckpointState | undefined> {
  const file = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (!file) return undefined;
  const end = file.indexOf('\n');
  if (end < 0) return undefined;
  const { crc32: sum, ...state } = JSON.parse(file.subarray(0, end).toString()) as CheckpointState & {
    crc32: number;
  };
  const bytes = file.subarray(end + 1);
  if (state.task !== task || crc32(bytes) !== sum) return undefined;
  const variables = variablesOf(state);
  const expected = variables.reduce((total, { size }) => total + 4 * size, 0);
  if (bytes.length !== expected) return undefined;
  let from = 0;
  for (const variable of variables) {
    const values = new Float32Array(variable.size);
    bytes.copy(Buffer.from(values.buffer), 0, from, from + 4 * variable.size);
    from += 4 * variable.size;
    tf.tidy(() => variable.assign(tf.tensor(values, variable.shape)));
  }
  return state;
}

export function removeCheckpoint(path: string): Promise<void> {
  return rm(path, { force: true });
}
