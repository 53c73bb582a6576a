/** Trains many places at once, each in a child process of its own. */
import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { TilewrightError } from '../errors.js';
import { forkWithEngine } from './engine/fork.js';
import type { EngineName } from './engine/load-engine.js';
import { usableCores } from './engine/usable-cores.js';
import { overLimit, workerEnded } from './errors.js';
import type { EpochLoss } from './metrics.js';
import type { FromWorker, PlaceOutcome, PlaceTask, ToWorker } from './worker-messages.js';

export type PlaceResult = { id: string } & PlaceOutcome;

/** An epoch of a place has ended. */
export interface PlaceProgress extends EpochLoss {
  id: string;
}

type EpochNews = Extract<FromWorker, { epoch: EpochLoss }>;

export interface TrainerOptions {
  /** As `selectEngine` found it. */
  engine: EngineName;
  /** Places trained side by side at most. Default: the processor's cores. */
  cores?: number;
  /** Bytes that all children together may take, though one is always there. Default: no bound. */
  memory?: number;
  /** Bytes that a child may take. Each place then has a child of its own, which is refused more. Default: no bound. */
  limit?: number;
  /** With a limit: the kernel holds each child to one core, another for each as far as there are enough. Linux alone. */
  pinned?: boolean;
  /** Ends all children at once; the generator then throws the signal's reason. */
  signal?: AbortSignal;
  onEpoch?: (progress: PlaceProgress) => void;
  /** Is waited for before a place is read; it may complete the task. What it throws fails the place; where that is of the kind that passes (503), all. */
  prepare?: (task: PlaceTask) => Promise<void>;
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
export async function* trainPlaces(
  tasks: PlaceTask[],
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
): AsyncGenerator<PlaceResult> {
  signal?.throwIfAborted();
  const waiting = [...tasks];
  const own = pinned ? usableCores() : [];
  const workers = Array.from(
    { length: Math.min(cores, tasks.length) },
    (_, i) => new TrainingWorker(engine, limit, own[i % own.length]),
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
  const failureOf = async (task: PlaceTask): Promise<PlaceOutcome | undefined> => {
    try {
      await prepare?.(task);
      return undefined;
    } catch (error) {
      if (!(error instanceof TilewrightError) || error.status === 503) throw error;
      return { error: { code: error.code, message: error.message } };
    }
  };
  let running = 0;
  const answers = new Answers<{ worker: TrainingWorker; result: PlaceResult }>();
  const start = (worker: TrainingWorker) => {
    const task = takeNext(waiting, worker, workers);
    worker.place = task.place;
    // A child with a limit has one task.
    const keep = limit === undefined && waiting.some((other) => sharesPlace(task, other));
    const told = ({ epoch, memory: now }: EpochNews) => {
      taken = limit ?? Math.max(taken ?? 0, now);
      startMore();
      onEpoch?.({ id: task.id, ...epoch });
    };
    running++;
    answers.add(
      failureOf(task)
        .then((failure) => failure ?? worker.train(task, keep, told))
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

const sharesPlace = (a: Pick<PlaceTask, 'place'>, b: Pick<PlaceTask, 'place'>) =>
  a.place !== undefined && a.place === b.place;

/** Of the place that the worker has read, else of one that none has, else the first. */
function takeNext(waiting: PlaceTask[], worker: TrainingWorker, workers: TrainingWorker[]): PlaceTask {
  const own = waiting.findIndex((task) => sharesPlace(task, worker));
  const fresh = waiting.findIndex((task) => !workers.some((one) => sharesPlace(task, one)));
  const [task] = waiting.splice(Math.max(0, own >= 0 ? own : fresh), 1);
  return task;
}

/** What comes of several promises, in the order in which it comes. Invariant: one `next` waits at a time. */
class Answers<T> {
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
 * A child process and what takes its place when it crashes.
 * Invariants: at most one task at a time; `child` is alive or undefined; after `end` none is started; with a limit, a child has one task.
 */
class TrainingWorker {
  /** Of its last task, whose files the child may still have in memory. */
  place: string | undefined;
  private child: ChildProcess | undefined;
  private ended = false;

  constructor(
    private readonly engine: EngineName,
    private readonly limit?: number,
    private readonly core?: number,
  ) {}

  /** Never rejects. */
  async train(task: PlaceTask, keep: boolean, onEpoch: (news: EpochNews) => void): Promise<PlaceOutcome> {
    const first = await this.attempt(task, keep, onEpoch);
    if (!('crashed' in first)) return first;
    const second = await this.attempt(task, keep, onEpoch);
    if (!('crashed' in second)) return second;
    const { code, message } = this.limit
      ? overLimit(this.limit, second.crashed)
      : workerEnded(task.id, second.crashed);
    return { error: { code, message } };
  }

  end(): void {
    this.ended = true;
    this.child?.kill('SIGKILL');
  }

  private attempt(
    task: PlaceTask,
    keep: boolean,
    onEpoch: (news: EpochNews) => void,
  ): Promise<PlaceOutcome | { crashed: string }> {
    if (this.ended) return Promise.resolve({ crashed: 'training was stopped' });
    const limit = this.limit;
    this.child ??= forkWithEngine(new URL('./worker.js', import.meta.url), this.engine, {
      limit,
      core: this.core,
    });
    const child = this.child;
    return new Promise((resolve) => {
      const finish = (outcome: PlaceOutcome | { crashed: string }) => {
        child.off('message', onMessage).off('error', onError).off('exit', onExit);
        if ('crashed' in outcome || limit !== undefined) {
          this.child = undefined;
          child.kill('SIGKILL');
        }
        resolve(outcome);
      };
      const onMessage = (message: FromWorker) => {
        if ('epoch' in message) onEpoch(message);
        else finish(message.outcome);
      };
      const onError = (error: Error) => finish({ crashed: error.message });
      const onExit = (code: number | null, signal: string | null) =>
        finish({ crashed: signal ?? `exit code ${code}` });
      child.on('message', onMessage).on('error', onError).on('exit', onExit);
      const message: ToWorker = { task, limit, keep };
      child.send(message, (error) => {
        if (error !== null) finish({ crashed: error.message });
      });
    });
  }
}
