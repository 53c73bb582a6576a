/** What one node at a time does for all: checkpoints of the log, and the sweep of the shared store. */

import { PeriodicTask } from '../../async/index.js';
import { writeCheckpoint } from '../commit/checkpoint.js';
import { CHECKPOINT_COMMITS } from '../commit/commit-log.js';
import { claim, forgetDoneClaims } from '../commit/fenced-lock.js';
import { claimed } from '../errors.js';
import { type SweepContext, type SweepReport, sweepStore } from './object-gc.js';
import type { Replica } from './replica.js';

/** A checkpoint is due after so many commits, or after so long where there are any, ms; it is looked for so often. */
const CHECKPOINT_TIME = 10 * 60_000;
const CHECKPOINT_LOOK = 10_000;
/** Where a checkpoint is wanted after another number of commits. */
const CHECKPOINT_SHORT_LOOK = 100;
/** The shared store is swept so often, ms. */
const SWEEP = 3_600_000;

export interface UpkeepOptions extends Omit<SweepContext, 'keep' | 'every'> {
  /** This node, which claims the work. */
  self: string;
  replica: Replica;
  /** A checkpoint is written after so many commits. */
  checkpointAfter?: number | undefined;
  signal: AbortSignal;
  /** Is told what goes wrong; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

export class Upkeep {
  private repeated: PeriodicTask[] = [];
  /** The last checkpoint that was seen, and when. */
  private checkpoint = { seq: 0, seen: performance.now() };

  constructor(private readonly options: UpkeepOptions) {}

  start(): void {
    const { checkpointAfter, signal, onFailure } = this.options;
    const look = checkpointAfter === undefined ? CHECKPOINT_LOOK : CHECKPOINT_SHORT_LOOK;
    this.repeated = [
      new PeriodicTask(() => this.keepCheckpoint(), look, onFailure),
      new PeriodicTask(
        () => this.sweep(),
        SWEEP,
        (error) => {
          if (!signal.aborted) onFailure(error);
        },
      ),
    ];
  }

  async close(): Promise<void> {
    await Promise.all(this.repeated.map((one) => one.close()));
  }

  /** Removes what is not needed of the shared store, unless another node is at it or has been of late. */
  sweep(options: Pick<SweepContext, 'keep' | 'every'> = {}): Promise<SweepReport | undefined> {
    const { cluster, coordination, log, objects, prefixLengths } = this.options;
    return this.alone('sweep', (lost) => {
      const signal = AbortSignal.any([lost, this.options.signal]);
      return sweepStore({ cluster, coordination, log, objects, prefixLengths, signal, ...options });
    });
  }

  /** Writes a checkpoint where one is due and no other node is at it. */
  private async keepCheckpoint(): Promise<void> {
    const { log, objects, coordination, prefixLengths, replica } = this.options;
    const { checkpointAfter = CHECKPOINT_COMMITS } = this.options;
    const seq = (await log.readCheckpoint())?.seq ?? 0;
    const now = performance.now();
    if (seq !== this.checkpoint.seq) this.checkpoint = { seq, seen: now };
    const commits = replica.applied - seq;
    const isOld = commits > 0 && now - this.checkpoint.seen >= CHECKPOINT_TIME;
    if (commits < checkpointAfter && !isOld) return;
    await this.alone('checkpoint', async () => {
      await forgetDoneClaims(coordination, await writeCheckpoint({ log, objects, prefixLengths }));
    });
  }

  /** Undefined where another node is at it. */
  private async alone<T>(name: string, work: (lost: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const held = await claim(this.options.coordination, name, this.options.self).catch((error) => {
      if (claimed.is(error)) return undefined;
      throw error;
    });
    if (!held) return undefined;
    try {
      return await work(held.lost);
    } finally {
      await held.release();
    }
  }
}
