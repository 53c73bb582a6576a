/** Background work that one node at a time does for the cluster: checkpoints of the log, and garbage collection in the object store. */
import { PeriodicTask } from '../../async/index.js';
import {
  acquireLock,
  CHECKPOINT_COMMITS,
  pruneCommittedLocks,
  writeLogCheckpoint,
} from '../commit-log/index.js';
import { lockHeld } from '../errors.js';
import type { Replica } from './replica.js';
import { collectObjectGarbage, type ObjectGcContext, type ObjectGcReport } from './replicated-object-gc.js';

/** A checkpoint with at least one new commit is written after this time. */
const MAX_CHECKPOINT_AGE_MS = 10 * 60_000;
const CHECKPOINT_POLL_MS = 10_000;
/** Poll interval if `checkpointAfter` is set. */
const CHECKPOINT_SHORT_POLL_MS = 100;
const GC_INTERVAL_MS = 3_600_000;

export interface MaintenanceOptions extends Omit<ObjectGcContext, 'keepMs' | 'minIntervalMs'> {
  /** This node, which locks the work. */
  self: string;
  replica: Replica;
  /** Number of commits between two checkpoints. */
  checkpointAfter?: number | undefined;
  signal: AbortSignal;
  /** Called with every error; failed work is retried. */
  onFailure: (error: unknown) => void;
}

export class Maintenance {
  private tasks: PeriodicTask[] = [];
  /** The last checkpoint that this node has seen, and when it first saw it. */
  private checkpoint = { seq: 0, seen: performance.now() };

  constructor(private readonly options: MaintenanceOptions) {}

  start(): void {
    const { checkpointAfter, signal, onFailure } = this.options;
    const pollMs = checkpointAfter === undefined ? CHECKPOINT_POLL_MS : CHECKPOINT_SHORT_POLL_MS;
    this.tasks = [
      new PeriodicTask(() => this.checkpointIfDue(), pollMs, onFailure),
      new PeriodicTask(
        () => this.collectGarbage(),
        GC_INTERVAL_MS,
        (error) => {
          if (!signal.aborted) onFailure(error);
        },
      ),
    ];
  }

  async close(): Promise<void> {
    await Promise.all(this.tasks.map((one) => one.close()));
  }

  /** Removes garbage from the object store, unless another node is doing so or has done so recently. */
  collectGarbage(
    options: Pick<ObjectGcContext, 'keepMs' | 'minIntervalMs'> = {},
  ): Promise<ObjectGcReport | undefined> {
    const { cluster, coordination, log, objects, prefixLengths } = this.options;
    return this.runExclusively('sweep', (lost) => {
      const signal = AbortSignal.any([lost, this.options.signal]);
      return collectObjectGarbage({ cluster, coordination, log, objects, prefixLengths, signal, ...options });
    });
  }

  /** Writes a checkpoint if one is due and no other node is writing one. */
  private async checkpointIfDue(): Promise<void> {
    const { log, objects, coordination, prefixLengths, replica } = this.options;
    const { checkpointAfter = CHECKPOINT_COMMITS } = this.options;
    const seq = (await log.readCheckpoint())?.seq ?? 0;
    const now = performance.now();
    if (seq !== this.checkpoint.seq) this.checkpoint = { seq, seen: now };
    const commits = replica.applied - seq;
    const isOld = commits > 0 && now - this.checkpoint.seen >= MAX_CHECKPOINT_AGE_MS;
    if (commits < checkpointAfter && !isOld) return;
    await this.runExclusively('checkpoint', async () => {
      await pruneCommittedLocks(coordination, await writeLogCheckpoint({ log, objects, prefixLengths }));
    });
  }

  /** Does the work under a lock; returns undefined if another node is doing it. */
  private async runExclusively<T>(
    name: string,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const held = await acquireLock(this.options.coordination, name, this.options.self).catch((error) => {
      if (lockHeld.is(error)) return undefined;
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
