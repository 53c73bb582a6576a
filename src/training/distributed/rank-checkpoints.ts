/** Checkpoints of a training of several members, which go on together from one that all of them have. */
import { join } from 'node:path';
import type { Variable } from '@tensorflow/tfjs-core';
import type { Tf } from '../../engines/index.js';
import {
  CHECKPOINT_INTERVAL_S,
  type CheckpointState,
  findCheckpoint,
  writeTrainingCheckpoint,
} from '../loop/index.js';
import { allGather, type ProcessGroup } from './ring-all-reduce.js';

/** Where a member keeps a training. */
export interface CheckpointLocation {
  /** Of this member and this training alone. */
  folder: string;
  /** Names the training with all that shapes its result, the same at all members. */
  task: string;
  everySeconds?: number;
}

/** How a training begins, the same at all members. */
export interface ResumePoint {
  /** After this epoch; 0 at the start. */
  epoch: number;
  /** Checkpoints are of no use, because no epoch is among those of all members. */
  unlike: boolean;
}

/**
 * What one member keeps, in two files that take turns. Members meet at the end of an epoch before any of them writes, and by then all have
 * written the checkpoint before; so wherever they are cut off, all have one of the same epoch. Invariant: `newest` is the file that was
 * written last, or from which the training went on; the other one is not needed any more.
 */
export class RankCheckpoints {
  private newest = 0;
  private writtenAt = performance.now();

  constructor(
    private readonly ring: ProcessGroup,
    private readonly variables: () => Variable[],
    private readonly kept: CheckpointLocation,
  ) {}

  /** Restores the variables from the latest epoch for which all members have a complete checkpoint. Returns no state if there is no such epoch. */
  async resume(tf: Tf): Promise<{ beginning: ResumePoint; state?: CheckpointState }> {
    const own = await Promise.all(
      [0, 1].map((file) => findCheckpoint(this.path(file), this.kept.task, this.variables)),
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

  /** Whether it is time for the next one. All go by the clock of the first member; the others say no. */
  get isDue(): boolean {
    const { everySeconds = CHECKPOINT_INTERVAL_S } = this.kept;
    return this.ring.index === 0 && performance.now() - this.writtenAt >= 1000 * everySeconds;
  }

  /** All members write after the same epoch. */
  async write(state: Omit<CheckpointState, 'task'>): Promise<void> {
    const file = 1 - this.newest;
    await writeTrainingCheckpoint(this.path(file), { task: this.kept.task, ...state }, this.variables());
    this.newest = file;
    this.writtenAt = performance.now();
  }

  private path(file: number): string {
    return join(this.kept.folder, `checkpoint-${file}`);
  }
}

/** Describes for people from which epoch the training resumes, or why it starts from the beginning. */
export function describeResumePoint({ epoch, unlike }: ResumePoint): string {
  if (epoch > 0) return `goes on from epoch ${epoch}`;
  return unlike
    ? 'begins anew: the nodes have no checkpoint of the same epoch'
    : 'begins with epoch 1: there is no checkpoint of this training';
}
