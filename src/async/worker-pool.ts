/** Worker threads that are started once and kept, and the messages to and from them. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, type Transferable, Worker } from 'node:worker_threads';
import { messageOf, TilewrightError } from '../errors.js';
import { workerDied, workerStuck } from './errors.js';

/** What a thread is sent: a task, or that the task it has is no longer wanted. */
type WorkerMessage<Task> = { task: Task } | { abort: true };

/** What a thread says: first that its code is loaded, then how each task ended. */
type Reply<Result> =
  | { loaded: true }
  | (({ result: Result } | { failure: Failure }) & { exceedsWasmLimit: boolean });

/** An error as it crosses between threads. */
interface Failure {
  /** Set for a TilewrightError. */
  known: { code: string; status: number } | undefined;
  /** Code of a system error, such as ENOSPC. */
  code: string | undefined;
  name: string;
  message: string;
  stack: string | undefined;
  cause: Failure | undefined;
}

export interface RunOptions {
  /** What moves to the thread and is not copied. */
  transfer?: readonly Transferable[];
  /** Ends the task: one that waits is not begun, one that runs is told. */
  signal?: AbortSignal;
  /** How long it may go on after that, ms, before its thread is ended. Default: 30 s, for tasks that have something to close. */
  graceMs?: number;
  /** Milliseconds after which the thread is ended, with TW_RASTER_WORKER_STUCK. Default, and at most: that of the pool. */
  timeLimitMs?: number;
}

interface PoolTask<Task, Result> {
  task: Task;
  transfer: readonly Transferable[];
  signal: AbortSignal | undefined;
  graceMs: number;
  timeLimitMs: number;
  /** Ends it where it still waits. */
  cancelWaiting: () => void;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

interface PoolWorker<Task, Result> {
  worker: Worker;
  /** Settles when its code is loaded, or it has ended. */
  loaded: Promise<void>;
  job: PoolTask<Task, Result> | undefined;
  /** Ends the thread where its task does not end. */
  timer: NodeJS.Timeout | undefined;
  onAbort: () => void;
  /** Why the thread was made to end; the error of its task. */
  killed: unknown;
}

/** Small, so that pixel buffers of tasks that are done are collected early. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 4 };
/**
 * No task of a sound file comes near, ms. Decoders of libraries have no end of their own on damaged ones; GDAL's processes have
 * one, which is shorter.
 */
const MAX_TASK_MS = 35 * 60_000;
/** How long a thread that is to end may load its code, ms. */
const MAX_LOAD_MS = 10_000;
/** A thread takes about as long to load its code and to get it compiled, ms; short work is done sooner and cheaper by fewer. */
const SPAWN_INTERVAL_MS = 250;
const ABORT_GRACE_MS = 30_000;
/** A thread that keeps more memory of WebAssembly is replaced after its task: such memory never gets smaller. */
const MAX_WASM_BYTES = 128 * 2 ** 20;

/**
 * Runs tasks on up to `size` threads, each of which loads the module at `module` (it calls `handleTasks`).
 *
 * Invariants: a thread has at most one task; tasks wait in the order they came, and only while all threads are busy; while
 * tasks wait, another thread is started every SPAWN_INTERVAL_MS ms until there are `size`; a thread that has been started is kept until
 * `close` or `endThreads`, and replaced if it ends or keeps much memory. A promise of `run` settles only when no thread
 * works on its task any more. An idle pool does not keep the process alive.
 */
export class WorkerPool<Task, Result> {
  private readonly workers = new Set<PoolWorker<Task, Result>>();
  private readonly waiting: PoolTask<Task, Result>[] = [];
  private closed = false;
  /** When the newest thread was started, and what starts the next. */
  private lastSpawnedAt = -SPAWN_INTERVAL_MS;
  private spawnTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly module: URL,
    readonly size: number,
    private readonly timeLimitMs = MAX_TASK_MS,
  ) {}

  /**
   * Runs a task and resolves to its result. Rejects with the error that the task threw (a TilewrightError keeps its code and
   * status), with the signal's reason, with TW_RASTER_WORKER_DIED, or with TW_RASTER_WORKER_STUCK after the time limit.
   */
  run(task: Task, options: RunOptions = {}): Promise<Result> {
    const { transfer = [], signal, graceMs = ABORT_GRACE_MS } = options;
    const timeLimitMs = Math.min(options.timeLimitMs ?? Infinity, this.timeLimitMs);
    return new Promise((resolve, reject) => {
      if (this.closed) {
        reject(workerDied('the pool was closed'));
        return;
      }
      const cancelWaiting = () => {
        this.waiting.splice(this.waiting.indexOf(job), 1);
        reject(signal!.reason);
      };
      const job = { task, transfer, signal, graceMs, timeLimitMs, cancelWaiting, resolve, reject };
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      if (signal) {
        // All tasks of a job have its signal: Node would warn of more than ten.
        setMaxListeners(0, signal);
        signal.addEventListener('abort', cancelWaiting);
      }
      this.waiting.push(job);
      this.dispatch();
    });
  }

  /** Ends the threads that have no task, which frees their memory. Later tasks start threads again. */
  async endThreads(): Promise<void> {
    const idle = [...this.workers].filter(({ job, killed }) => !job && !killed);
    await Promise.all(idle.map((member) => this.remove(member)));
  }

  /** Ends all threads. Tasks that are not done are rejected. */
  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.spawnTimer);
    for (const { signal, cancelWaiting, reject } of this.waiting.splice(0)) {
      signal?.removeEventListener('abort', cancelWaiting);
      reject(workerDied('the pool was closed'));
    }
    await Promise.all([...this.workers].map(terminate));
  }

  private dispatch(): void {
    while (this.waiting.length > 0) {
      const member = [...this.workers].find(({ job, killed }) => !job && !killed) ?? this.spawn();
      if (!member) return;
      this.assign(member, this.waiting.shift()!);
    }
  }

  private scheduleSpawn(): void {
    this.spawnTimer = undefined;
    this.dispatch();
  }

  /** None where there are enough, or where the newest is still warming up. */
  private spawn(): PoolWorker<Task, Result> | undefined {
    if (this.workers.size >= this.size) return undefined;
    const wait = this.lastSpawnedAt + SPAWN_INTERVAL_MS - performance.now();
    if (wait > 0 && this.workers.size > 0) {
      this.spawnTimer ??= setTimeout(() => this.scheduleSpawn(), wait);
      return undefined;
    }
    this.lastSpawnedAt = performance.now();
    const worker = new Worker(this.module, { resourceLimits: RESOURCE_LIMITS });
    worker.unref();
    const member: PoolWorker<Task, Result> = {
      worker,
      loaded: new Promise((done) => {
        worker.once('message', () => done());
        worker.once('exit', () => done());
      }),
      job: undefined,
      timer: undefined,
      onAbort: () => {
        worker.postMessage({ abort: true } satisfies WorkerMessage<Task>);
        const { graceMs, signal } = member.job!;
        this.terminateAfter(member, graceMs, signal!.reason);
      },
      killed: undefined,
    };
    let reason = 'it ended';
    worker.on('message', (reply: Reply<Result>) => this.settle(member, reply));
    worker.on('error', (error) => {
      reason = messageOf(error);
    });
    worker.on('exit', (code) => {
      this.workers.delete(member);
      const died = workerDied(this.closed ? 'the pool was closed' : `${reason} (exit code ${code})`);
      this.detachTask(member)?.reject(member.killed ?? died);
      this.dispatch();
    });
    this.workers.add(member);
    return member;
  }

  private assign(member: PoolWorker<Task, Result>, job: PoolTask<Task, Result>): void {
    job.signal?.removeEventListener('abort', job.cancelWaiting);
    try {
      member.worker.postMessage({ task: job.task } satisfies WorkerMessage<Task>, job.transfer);
    } catch (error) {
      // The task itself cannot be sent to a thread.
      job.reject(error);
      return;
    }
    member.job = job;
    member.worker.ref();
    job.signal?.addEventListener('abort', member.onAbort);
    this.terminateAfter(member, job.timeLimitMs, workerStuck(job.timeLimitMs / 1000));
  }

  private terminateAfter(member: PoolWorker<Task, Result>, delay: number, reason: unknown): void {
    clearTimeout(member.timer);
    member.timer = setTimeout(() => {
      member.killed = reason;
      void terminate(member);
    }, delay);
  }

  /** The task of a thread, which is then free. */
  private detachTask(member: PoolWorker<Task, Result>): PoolTask<Task, Result> | undefined {
    const { job, timer, onAbort, worker } = member;
    clearTimeout(timer);
    job?.signal?.removeEventListener('abort', onAbort);
    member.job = undefined;
    worker.unref();
    return job;
  }

  private async remove(member: PoolWorker<Task, Result>): Promise<void> {
    member.killed = workerDied('it is replaced');
    this.workers.delete(member);
    await terminate(member);
  }

  private settle(member: PoolWorker<Task, Result>, reply: Reply<Result>): void {
    if ('loaded' in reply) return;
    const job = this.detachTask(member);
    if (reply.exceedsWasmLimit) void this.remove(member);
    if ('failure' in reply) job?.reject(job.signal?.aborted ? job.signal.reason : fromFailure(reply.failure));
    else job?.resolve(reply.result);
    this.dispatch();
  }
}

/**
 * Ends a thread, but not while it loads its code: the whole process of Node 24 dies (a failed check of V8) where a thread is
 * ended just as its modules with top-level await are done.
 */
async function terminate<Task, Result>({ worker, loaded }: PoolWorker<Task, Result>): Promise<void> {
  worker.ref();
  await Promise.race([loaded, sleep(MAX_LOAD_MS, undefined, { ref: false })]);
  await worker.terminate();
}

/**
 * The side of the thread: answers every task with what `handler` makes of it; `signal` says that the task is no longer wanted.
 * `transfer` names what of a result moves to the caller and is not copied.
 */
export function handleTasks<Task, Result>(
  handler: (task: Task, signal: AbortSignal) => Result | Promise<Result>,
  transfer: (result: Result) => readonly Transferable[] = () => [],
): void {
  const port = parentPort;
  if (!port) throw new Error('serveTasks is for modules that a WorkerPool loads');
  let running = new AbortController();
  const take = async (order: WorkerMessage<Task>) => {
    if ('abort' in order) {
      running.abort();
      return;
    }
    running = new AbortController();
    try {
      const result = await handler(order.task, running.signal);
      port.postMessage(
        { result, exceedsWasmLimit: exceedsWasmLimit() } satisfies Reply<Result>,
        transfer(result),
      );
    } catch (error) {
      port.postMessage({
        failure: toFailure(error, 5),
        exceedsWasmLimit: exceedsWasmLimit(),
      } satisfies Reply<Result>);
    }
  };
  // After the module that calls this, and all that wait for it, are loaded.
  setImmediate(() => {
    port.postMessage({ loaded: true } satisfies Reply<Result>);
    port.on('message', take);
  });
}

/** `external` counts the memory of WebAssembly and arrays; arrays are collected. */
function exceedsWasmLimit(): boolean {
  const { external, arrayBuffers } = process.memoryUsage();
  return external - arrayBuffers > MAX_WASM_BYTES;
}

/** `depth`: how many causes are kept. */
function toFailure(error: unknown, depth: number): Failure {
  const known = error instanceof TilewrightError ? { code: error.code, status: error.status } : undefined;
  const { name, stack, cause } =
    error instanceof Error ? error : { name: 'Error', stack: undefined, cause: undefined };
  return {
    known,
    code: (error as NodeJS.ErrnoException | undefined)?.code,
    name,
    message: messageOf(error),
    stack,
    cause: cause === undefined || depth === 0 ? undefined : toFailure(cause, depth - 1),
  };
}

function fromFailure({ known, code, name, message, stack, cause }: Failure): Error {
  const options = cause === undefined ? {} : { cause: fromFailure(cause) };
  const error = known
    ? new TilewrightError(known.code, known.status, message, options)
    : Object.assign(new Error(message, options), { name }, code !== undefined && { code });
  if (stack !== undefined) error.stack = stack;
  return error;
}
