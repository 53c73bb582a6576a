/** Checkpoints of a distributed training, which resumes from one that all ranks have. */
import { join } from 'node:path';
import type { Variable } from '@tensorflow/tfjs-core';
import type { Tf } from '../../engines/index.js';
import {
  CHECKPOINT_INTERVAL_S,
  type CheckpointState,
  findCheckpoint,
  writeTrainingCheckpoint,
} from '../checkpoint.js';
import { allGather, type ProcessGroup } from './ring.js';

/** Location of the checkpoints of a rank. */
export interface CheckpointLocation {
  /** Folder of this rank and this training only. */
  folder: string;
  /** Identifies the training with everything that affects its result; the same on all ranks. */
  task: string;
  everySeconds?: number;
}

/** The start of a training; the same on all ranks. */
export interface ResumePoint {
  /** Resumes after this epoch; 0 at the start. */
  epoch: number;
  /** True if there are checkpoints, but none of an epoch that all ranks have. */
  unlike: boolean;
}

/**
 * Checkpoints of one rank, in two files that alternate. Ranks synchronise at the end of an epoch before writing, and by then the previous
 * checkpoint is complete everywhere. So after a crash at any point, all ranks share a checkpoint of one epoch. Invariant: `newest` is the
 * file that was written last, or from which the training resumed; the other one is no longer needed.
 */
export class RankCheckpoints {
  private newest = 0;
  private writtenAt = performance.now();

  constructor(
    private readonly ring: ProcessGroup,
    private readonly variables: () => Variable[],
    private readonly location: CheckpointLocation,
  ) {}

  /** Restores the variables from the latest epoch for which all ranks have a complete checkpoint. Returns no state if there is none. */
  async resume(tf: Tf): Promise<{ beginning: ResumePoint; state?: CheckpointState }> {
    const own = await Promise.all(
      [0, 1].map((file) => findCheckpoint(this.path(file), this.location.task, this.variables)),
    );
    const ownEpochs = own.map((one) => one?.state.losses.length ?? 0);
    const all = await allGather(this.ring, ownEpochs);
    const epoch = Math.max(0, ...ownEpochs.filter((one) => all.every((epochs) => epochs.includes(one))));
    if (epoch === 0) return { beginning: { epoch, unlike: all.flat().some((one) => one > 0) } };
    this.newest = ownEpochs.indexOf(epoch);
    const { state, restore } = own[this.newest]!;
    restore(tf);
    return { beginning: { epoch, unlike: false }, state };
  }

  /** True if the next checkpoint is due. Only the clock of the first rank counts; on other ranks it is false. */
  get isDue(): boolean {
    const { everySeconds = CHECKPOINT_INTERVAL_S } = this.location;
    return this.ring.index === 0 && performance.now() - this.writtenAt >= 1000 * everySeconds;
  }

  /** All ranks write after the same epoch. */
  async write(state: Omit<CheckpointState, 'task'>): Promise<void> {
    const file = 1 - this.newest;
    await writeTrainingCheckpoint(this.path(file), { task: this.location.task, ...state }, this.variables());
    this.newest = file;
    this.writtenAt = performance.now();
  }

  private path(file: number): string {
    return join(this.location.folder, `checkpoint-${file}`);
  }
}

/** Describes for people from which epoch the training resumes, or why it starts from the beginning. */
export function describeResumePoint({ epoch, unlike }: ResumePoint): string {
  if (epoch > 0) return `resumes from epoch ${epoch}`;
  return unlike
    ? 'starts from the beginning: the nodes have no checkpoint of the same epoch'
    : 'starts with epoch 1: this training has no checkpoint';
}
