/** State of a training after an epoch, from which it resumes to the same weights. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { Variable } from '@tensorflow/tfjs-core';
import type { Tf } from '../engines/index.js';
import type { EpochLosses } from './evaluation.js';
import type { WarmStartResult } from './warm-start.js';

const CHECKSUM_BYTES = 4;

/** Identifies the task with everything that affects its result. */
interface TaskState {
  task: string;
}

/**
 * Writes a file with the state of a training: a line of JSON, values as float32, and the CRC-32 of both, all little-endian. A process that
 * is killed leaves the former file or the new one. A power cut may leave a damaged one, which is not read.
 */
export async function writeStateFile(path: string, state: TaskState, values: Float32Array[]): Promise<void> {
  const bytes = Buffer.concat([
    Buffer.from(`${JSON.stringify(state)}\n`),
    ...values.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
    Buffer.alloc(CHECKSUM_BYTES),
  ]);
  const end = bytes.length - CHECKSUM_BYTES;
  bytes.writeUInt32LE(crc32(bytes.subarray(0, end)), end);
  await writeFile(`${path}.new`, bytes);
  await rename(`${path}.new`, path);
}

/** Returns undefined if the file is missing, incomplete or of another task. */
export async function readStateFile<State extends TaskState>(
  path: string,
  task: string,
): Promise<{ state: State; values: Buffer } | undefined> {
  const file = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (!file || file.length < CHECKSUM_BYTES) return undefined;
  const bytes = file.subarray(0, -CHECKSUM_BYTES);
  if (crc32(bytes) !== file.readUInt32LE(bytes.length)) return undefined;
  const end = bytes.indexOf('\n');
  const state = JSON.parse(bytes.subarray(0, end).toString()) as State;
  return state.task === task ? { state, values: bytes.subarray(end + 1) } : undefined;
}

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
