/** Trains many cells in parallel child processes. */
import { availableParallelism } from 'node:os';
import { allowedCpus, type EngineName, EngineProcess, ProcessEnded } from '../engines/index.js';
import { TilewrightError } from '../errors.js';
import { memoryLimitExceeded, processCrashed, trainingFailed } from './errors.js';
import type { EpochLosses } from './evaluation.js';
import type { EpochProgress, TrainCellResult, TrainCellTask, TrainingHandlers } from './train-task.js';

export type CellResult = { id: string } & TrainCellResult;

/** An epoch of a cell has ended. */
export interface CellProgress extends EpochLosses {
  id: string;
}

/** Maximum number of attempts for a cell whose process ends. */
const MAX_ATTEMPTS = 2;

/** Script of the child processes, which answer `TrainingHandlers`. */
export const TRAINING_WORKER = new URL('./train-worker.bundle.js', import.meta.url);

interface TrainerOptions {
  /** As returned by `selectEngine`. */
  engine: EngineName;
  /** Maximum number of cells trained in parallel. Default: the number of cores. */
  cores?: number;
  /** Memory for all children together, in bytes; one child always runs. Default: no limit. */
  memory?: number;
  /** Memory limit of each child, in bytes, enforced by the kernel. Default: no limit. */
  limit?: number;
  /** Pins each child to one core, a different one as long as there are enough. Requires a limit. Linux only. */
  pinned?: boolean;
  /** Ends all children immediately; the generator then throws the reason of the signal. */
  signal?: AbortSignal;
  onEpoch?: (progress: CellProgress) => void;
  /**
   * Awaited before a process is started for a cell; it may complete the task, or skip the cell. An error that it throws fails the cell; a
   * temporary one (503) fails all.
   */
  prepare?: (task: TrainCellTask) => Promise<{ skipped: string } | undefined>;
}

/**
 * Trains every cell and yields each result as soon as it is available, in any order. A cell whose child crashes is retried once in a new
 * child; it then fails alone, with TW_TRAIN_CRASHED, or TW_TRAIN_MEMORY if there is a limit. Leaving the loop ends the children.
 *
 * Tasks of one cell go to one child, which reads the cell once, unless another child would be idle.
 *
 * The memory use of the first child after its first epoch decides how many more fit into `memory`. With a memory limit, the limit is used
 * instead.
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
  const cpus = pinned ? allowedCpus() : [];
  const workers = Array.from(
    { length: Math.min(cores, tasks.length) },
    // Offset by the process id, so that several servers on one machine usually start with different cores.
    (_, i) => new TrainingWorker(engine, limit, cpus[(process.pid + i) % cpus.length]),
  );
  const idle = [...workers];
  /** Memory of one child in bytes: its limit, or the largest use so far. */
  let childMemory = limit;
  const maxParallel = () =>
    memory === Infinity ? cores : childMemory ? Math.max(1, Math.floor(memory / childMemory)) : 1;
  const endAll = () => {
    for (const worker of workers) worker.end();
  };
  signal?.addEventListener('abort', endAll);
  const prepareTask = async (task: TrainCellTask): Promise<TrainCellResult | undefined> => {
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
    // Decoded bands would count towards a limit.
    const keep = limit === undefined && waiting.some((other) => isSameCell(task, other));
    const onProgress = ({ epoch, memory: now }: EpochProgress) => {
      childMemory = limit ?? Math.max(childMemory ?? 0, now);
      startMore();
      onEpoch?.({ id: task.id, ...epoch });
    };
    running++;
    answers.add(
      prepareTask(task)
        .then((outcome) => outcome ?? worker.train(task, keep, onProgress))
        .then((outcome) => ({ worker, result: { id: task.id, ...outcome } })),
    );
  };
  const startMore = () => {
    while (running < maxParallel() && waiting.length > 0 && idle.length > 0) start(idle.shift()!);
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

/** Returns a task of the cell that the worker has read, otherwise of a cell that no worker has read, otherwise the first. */
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

/** Yields promises in the order in which they settle. Invariant: at most one `next` waits at a time. */
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
 * A child process, and its replacement when it ends. Invariants: at most one task at a time; after `end` no process is started; with a
 * limit, a process whose task failed gets no further task, and no task fails because of memory in a process that had another task before.
 */
class TrainingWorker {
  /** Cell of its last task, whose files the child may still have in memory. */
  cell: string | undefined;
  private process: EngineProcess<TrainingHandlers> | undefined;
  private ended = false;

  constructor(
    private readonly engine: EngineName,
    private readonly limit?: number,
    private readonly core?: number,
  ) {}

  /** Retries a task if its process ends. Rejects only with what `onEpoch` throws. */
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
        // Memory that earlier tasks have not released may be missing, and not every library reports that as the cause.
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
    if (!this.process?.alive) this.process = new EngineProcess(TRAINING_WORKER, this.engine, options);
    try {
      return await this.process.request('train', { task, limit, keep }, { onProgress });
    } catch (error) {
      if (limit !== undefined) this.process.close();
      throw error;
    }
  }
}
