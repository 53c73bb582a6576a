/** Trains many places at once, in child processes. */
import { availableParallelism } from 'node:os';
import { allowedCpus, type EngineName, EngineProcess, ProcessEnded } from '../../engines/index.js';
import { TilewrightError } from '../../errors.js';
import { memoryLimitExceeded, processCrashed, trainingFailed } from '../errors.js';
import type { EpochLosses } from '../evaluation/index.js';
import type { EpochProgress, TrainCellResult, TrainCellTask, TrainingHandlers } from './training-messages.js';

export type CellResult = { id: string } & TrainCellResult;

/** An epoch of a place has ended. */
export interface CellProgress extends EpochLosses {
  id: string;
}

/** How often a place is trained until its process does not end. */
const MAX_ATTEMPTS = 2;

export interface TrainerOptions {
  /** As `selectEngine` found it. */
  engine: EngineName;
  /** Places trained side by side at most. Default: the processor's cores. */
  cores?: number;
  /** Bytes that all children together may take, though one is always there. Default: no bound. */
  memory?: number;
  /** Bytes that a child may take; it is refused more. Default: no bound. */
  limit?: number;
  /** With a limit: the kernel holds each child to one core, another for each as far as there are enough. Linux alone. */
  pinned?: boolean;
  /** Ends all children at once; the generator then throws the signal's reason. */
  signal?: AbortSignal;
  onEpoch?: (progress: CellProgress) => void;
  /**
   * Is waited for before a process is started for a place; it may complete the task, or skip the place. What it throws fails the place;
   * where that is of the kind that passes (503), all.
   */
  prepare?: (task: TrainCellTask) => Promise<{ skipped: string } | undefined>;
}

/**
 * Trains every place and yields its result as soon as it is there, in any order. A place whose child crashes is tried once
 * more in a new child; it then fails alone, with TW_TRAIN_CRASHED, or TW_TRAIN_MEMORY where there is a
 * limit. Leaving the loop ends the children.
 *
 * Tasks of one place go to one child, which reads it once, as long as no child would be idle for it.
 *
 * The first child shows what one takes, after its first epoch; the others start as far as `memory` allows for more of that. Where there
 * is a limit, that tells it from the start.
 */
export async function* trainCells(
  tasks: TrainCellTask[],
  {
    engine,
    cores = availableParallelism(),
    memory = Infinity,
    limit,
    pinned = false,
    signal,
    onEpoch,
    prepare,
  }: TrainerOptions,
): AsyncGenerator<CellResult> {
  signal?.throwIfAborted();
  const waiting = [...tasks];
  const own = pinned ? allowedCpus() : [];
  const workers = Array.from(
    { length: Math.min(cores, tasks.length) },
    // Several servers on one machine begin with different cores, most often.
    (_, i) => new TrainingWorker(engine, limit, own[(process.pid + i) % own.length]),
  );
  const idle = [...workers];
  /** What a child takes: its limit, or the most that one has taken, bytes. */
  let taken = limit;
  const sideBySide = () =>
    memory === Infinity ? cores : taken ? Math.max(1, Math.floor(memory / taken)) : 1;
  const endAll = () => {
    for (const worker of workers) worker.end();
  };
  signal?.addEventListener('abort', endAll);
  const withoutProcess = async (task: TrainCellTask): Promise<TrainCellResult | undefined> => {
    try {
      return await prepare?.(task);
    } catch (error) {
      if (!(error instanceof TilewrightError) || error.status === 503) throw error;
      return { error: { code: error.code, message: error.message } };
    }
  };
  let running = 0;
  const answers = new CompletionQueue<{ worker: TrainingWorker; result: CellResult }>();
  const start = (worker: TrainingWorker) => {
    const task = takeNext(waiting, worker, workers);
    worker.cell = task.cell;
    // Decoded bands would count against a limit.
    const keep = limit === undefined && waiting.some((other) => isSameCell(task, other));
    const onProgress = ({ epoch, memory: now }: EpochProgress) => {
      taken = limit ?? Math.max(taken ?? 0, now);
      startMore();
      onEpoch?.({ id: task.id, ...epoch });
    };
    running++;
    answers.add(
      withoutProcess(task)
        .then((outcome) => outcome ?? worker.train(task, keep, onProgress))
        .then((outcome) => ({ worker, result: { id: task.id, ...outcome } })),
    );
  };
  const startMore = () => {
    while (running < sideBySide() && waiting.length > 0 && idle.length > 0) start(idle.shift()!);
  };
  try {
    startMore();
    while (running > 0) {
      const { worker, result } = await answers.next();
      signal?.throwIfAborted();
      running--;
      idle.unshift(worker);
      startMore();
      yield result;
      signal?.throwIfAborted();
    }
  } finally {
    signal?.removeEventListener('abort', endAll);
    endAll();
  }
}

const isSameCell = (a: Pick<TrainCellTask, 'cell'>, b: Pick<TrainCellTask, 'cell'>) =>
  a.cell !== undefined && a.cell === b.cell;

/** Of the place that the worker has read, else of one that none has, else the first. */
function takeNext(
  waiting: TrainCellTask[],
  worker: TrainingWorker,
  workers: TrainingWorker[],
): TrainCellTask {
  const own = waiting.findIndex((task) => isSameCell(task, worker));
  const fresh = waiting.findIndex((task) => !workers.some((one) => isSameCell(task, one)));
  const [task] = waiting.splice(Math.max(0, own >= 0 ? own : fresh), 1);
  return task;
}

/** What comes of several promises, in the order in which it comes. Invariant: one `next` waits at a time. */
class CompletionQueue<T> {
  private readonly settled: Promise<T>[] = [];
  private wake = () => {};

  add(answer: Promise<T>): void {
    const settle = () => {
      this.settled.push(answer);
      this.wake();
    };
    answer.then(settle, settle);
  }

  async next(): Promise<T> {
    while (this.settled.length === 0)
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    return this.settled.shift()!;
  }
}

/**
 * A child process, and its replacement when it ends.
 * Invariants: at most one task at a time; after `end` no process is started; with a limit, a process whose task failed gets no other, and no
 * task fails for want of memory in a process that had another task before.
 */
class TrainingWorker {
  /** Of its last task, whose files the child may still have in memory. */
  cell: string | undefined;
  private process: EngineProcess<TrainingHandlers> | undefined;
  private ended = false;

  constructor(
    private readonly engine: EngineName,
    private readonly limit?: number,
    private readonly core?: number,
  ) {}

  /** Tries a task again if its process ends. Rejects only with what `onEpoch` throws. */
  async train(
    task: TrainCellTask,
    keep: boolean,
    onEpoch: (progress: EpochProgress) => void,
  ): Promise<TrainCellResult> {
    let how = '';
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const isUsed = this.process?.alive;
      try {
        return await this.attempt(task, keep, onEpoch);
      } catch (error) {
        // Memory that earlier tasks have left may be missing now, and not every library names that as the cause.
        if (isUsed && this.limit !== undefined && (memoryLimitExceeded.is(error) || trainingFailed.is(error)))
          continue;
        if (error instanceof TilewrightError) return { error: { code: error.code, message: error.message } };
        if (!(error instanceof ProcessEnded)) throw error;
        how = error.message;
      }
    }
    const { code, message } = this.limit
      ? memoryLimitExceeded(this.limit, how)
      : processCrashed(task.id, how);
    return { error: { code, message } };
  }

  end(): void {
    this.ended = true;
    this.process?.close();
  }

  private async attempt(task: TrainCellTask, keep: boolean, onProgress: (progress: EpochProgress) => void) {
    if (this.ended) throw new ProcessEnded('training was stopped');
    const { limit } = this;
    const options = { limit, core: this.core };
    if (!this.process?.alive)
      this.process = new EngineProcess(
        new URL('./training-worker.js', import.meta.url),
        this.engine,
        options,
      );
    try {
      return await this.process.request('train', { task, limit, keep }, { onProgress });
    } catch (error) {
      if (limit !== undefined) this.process.close();
      throw error;
    }
  }
}
