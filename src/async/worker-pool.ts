/** Worker threads that are started once and reused, and the messages to and from them. A task may select its function by its `kind`. */
import { setMaxListeners } from 'node:events';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, type Transferable, Worker, workerData } from 'node:worker_threads';
import { messageOf, TilewrightError } from '../errors.js';
import { workerBlocked, workerDied, workerStuck } from './errors.js';

/** A message to a thread: a task, or the request to abort the current task. */
type WorkerMessage<Task> = { task: Task } | { abort: true };

/**
 * A message from a thread: first that its code is loaded, with its folder below /proc if the system counts the CPU time of threads there;
 * then the outcome of each task.
 */
type Reply<Result> =
  | { loaded: true; procFolder: string | undefined }
  | (({ result: Result } | { failure: Failure }) & { exceedsWasmLimit: boolean });

/** An error, serialized for `postMessage`. */
interface Failure {
  /** Set for a TilewrightError. */
  known: { code: string; status: number } | undefined;
  /** The code of a system error, for example ENOSPC. */
  code: string | undefined;
  name: string;
  message: string;
  stack: string | undefined;
  cause: Failure | undefined;
}

interface RunOptions {
  /** Objects that are moved to the thread instead of copied. */
  transfer?: readonly Transferable[];
  /** Cancels the task: a waiting task is not started; a running one gets the abort through its own signal. */
  signal?: AbortSignal;
  /**
   * Milliseconds that the task may take to end after an abort before its thread is terminated. Default: 30 s, for tasks that must clean
   * up.
   */
  graceMs?: number;
  /**
   * CPU time of the task in milliseconds after which the thread is terminated with TW_RASTER_WORKER_STUCK. Default and maximum: the limit
   * of the pool.
   */
  timeLimitMs?: number;
}

interface PoolTask<Task, Result> {
  task: Task;
  transfer: readonly Transferable[];
  signal: AbortSignal | undefined;
  graceMs: number;
  timeLimitMs: number;
  /** Rejects the task if it still waits. */
  cancelWaiting: () => void;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

interface PoolWorker<Task, Result> {
  worker: Worker;
  /** Settles when the code of the thread is loaded, or the thread has ended. */
  loaded: Promise<void>;
  /** See `Reply`. */
  procFolder: string | undefined;
  /** Its first element: the CPU time of the thread when its task began, ms; infinity if unknown. The thread writes it. */
  cpuAtStart: Float64Array;
  job: PoolTask<Task, Result> | undefined;
  /** Terminates the thread if its task does not end in time. */
  timer: NodeJS.Timeout | undefined;
  onAbort: () => void;
  /** The reason why the pool terminates the thread; the task is rejected with it. */
  killed: unknown;
}

/** The young generation is small so that pixel buffers of finished tasks are collected early. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 4 };
/**
 * Valid files need far less. Decoders of libraries have no time limit of their own on damaged files; GDAL processes have one, which is
 * shorter.
 */
const MAX_TASK_MS = 35 * 60_000;
/** Time limit for loading the code of a thread that is being terminated. */
const MAX_LOAD_MS = 10_000;
/** Loading and compiling the code of a thread takes about this long, so short work is done sooner and at less cost by fewer threads. */
const SPAWN_INTERVAL_MS = 250;
const ABORT_GRACE_MS = 30_000;
/**
 * A task may last this many times its limit while its thread takes little CPU time: on a busy machine, in a paused process, or in a read
 * from a file system that does not answer.
 */
const MAX_BLOCKED_FACTOR = 10;
/** A thread that holds more WebAssembly memory is replaced after its task, because such memory never shrinks. */
const MAX_WASM_BYTES = 128 * 2 ** 20;

/**
 * Runs tasks on at most `threads` threads, each of which loads the module at `module`, which must call `handleTasks`.
 *
 * Invariants: A thread has at most one task. Tasks start in the order of the calls and wait only while all threads are busy. While
 * tasks wait, another thread is started every SPAWN_INTERVAL_MS until there are `threads`. A thread lives until `close` or
 * `endThreads`, and is replaced if it ends or exceeds MAX_WASM_BYTES. A promise of `run` settles only when no thread works on its
 * task any more. An idle pool does not keep the process alive.
 */
export class WorkerPool<Task, Result> {
  private readonly workers = new Set<PoolWorker<Task, Result>>();
  private readonly waiting: PoolTask<Task, Result>[] = [];
  private closed = false;
  /** When the newest thread was started, and the timer that starts the next one. */
  private lastSpawnedAt = -SPAWN_INTERVAL_MS;
  private spawnTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly module: URL,
    readonly threads: number,
    private readonly timeLimitMs = MAX_TASK_MS,
  ) {}

  /**
   * Runs a task and resolves to its result. Rejects with the error that the task threw (a TilewrightError keeps its code and
   * status), with the reason of the signal, with TW_RASTER_WORKER_DIED, with TW_RASTER_WORKER_STUCK after the time limit, which counts CPU
   * time where the system tells it, or with TW_RASTER_WORKER_BLOCKED after ten times the limit.
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
        // All tasks of a job share its signal; Node would warn about more than ten listeners.
        setMaxListeners(0, signal);
        signal.addEventListener('abort', cancelWaiting);
      }
      this.waiting.push(job);
      this.dispatch();
    });
  }

  /** Terminates the threads that have no task, which frees their memory. Later tasks start new threads. */
  async endThreads(): Promise<void> {
    const idle = [...this.workers].filter(({ job, killed }) => !job && !killed);
    await Promise.all(idle.map((member) => this.remove(member)));
  }

  /** Terminates all threads. Unfinished tasks are rejected. */
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

  /** Starts a thread. Returns undefined if all threads exist, or if the newest one is still starting up. */
  private spawn(): PoolWorker<Task, Result> | undefined {
    if (this.workers.size >= this.threads) return undefined;
    const delayMs = this.lastSpawnedAt + SPAWN_INTERVAL_MS - performance.now();
    if (delayMs > 0 && this.workers.size > 0) {
      this.spawnTimer ??= setTimeout(() => {
        this.spawnTimer = undefined;
        this.dispatch();
      }, delayMs);
      return undefined;
    }
    this.lastSpawnedAt = performance.now();
    const cpuAtStart = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT));
    const worker = new Worker(this.module, { resourceLimits: RESOURCE_LIMITS, workerData: cpuAtStart });
    worker.unref();
    const member: PoolWorker<Task, Result> = {
      worker,
      loaded: new Promise((done) => {
        worker.once('message', () => done());
        worker.once('exit', () => done());
      }),
      procFolder: undefined,
      cpuAtStart,
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
      // The task cannot be cloned.
      job.reject(error);
      return;
    }
    member.job = job;
    member.worker.ref();
    job.signal?.addEventListener('abort', member.onAbort);
    // The code of the thread is loaded before the task begins.
    void member.loaded.then(() => {
      if (member.job === job && !job.signal?.aborted) this.limitTime(member, job);
    });
  }

  /** Terminates the thread when its task has taken the limit as CPU time, or a multiple of it on the clock. */
  private limitTime(member: PoolWorker<Task, Result>, { timeLimitMs: limit }: PoolTask<Task, Result>): void {
    const begun = performance.now();
    const check = () => {
      const lasted = performance.now() - begun;
      const { procFolder, cpuAtStart } = member;
      const busy = procFolder === undefined ? lasted : Math.max(0, (cpuMs(procFolder) ?? 0) - cpuAtStart[0]!);
      if (busy >= limit) this.kill(member, workerStuck(limit / 1000));
      else if (lasted >= MAX_BLOCKED_FACTOR * limit)
        this.kill(member, workerBlocked(lasted / 1000, busy / 1000));
      else member.timer = setTimeout(check, limit - busy);
    };
    member.timer = setTimeout(check, limit);
  }

  private terminateAfter(member: PoolWorker<Task, Result>, delay: number, reason: unknown): void {
    clearTimeout(member.timer);
    member.timer = setTimeout(() => this.kill(member, reason), delay);
  }

  private kill(member: PoolWorker<Task, Result>, reason: unknown): void {
    member.killed = reason;
    void terminate(member);
  }

  /** Takes the task off a thread, which is then idle. */
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
    if ('loaded' in reply) {
      member.procFolder = reply.procFolder;
      return;
    }
    const job = this.detachTask(member);
    if (reply.exceedsWasmLimit) void this.remove(member);
    if ('failure' in reply) job?.reject(job.signal?.aborted ? job.signal.reason : fromFailure(reply.failure));
    else job?.resolve(reply.result);
    this.dispatch();
  }
}

/**
 * Terminates a thread, but not while it loads its code: Node 24 crashes (a failed check of V8) if a thread is terminated just as
 * its modules with top-level await finish.
 */
async function terminate<Task, Result>({ worker, loaded }: PoolWorker<Task, Result>): Promise<void> {
  worker.ref();
  await Promise.race([loaded, sleep(MAX_LOAD_MS, undefined, { ref: false })]);
  await worker.terminate();
}

/** The folder of this thread below /proc; undefined if the system does not count the CPU time of threads there. */
function ownProcFolder(): string | undefined {
  if (!existsSync('/proc/thread-self/schedstat')) return undefined;
  return `/proc/${readlinkSync('/proc/thread-self')}`;
}

/** The CPU time of a thread in milliseconds: the first number of its schedstat, in nanoseconds. Undefined if the thread has ended. */
function cpuMs(procFolder: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(`${procFolder}/schedstat`, 'latin1'), 10) / 1e6;
  } catch {
    // The thread has just ended, or the process has no file descriptor left.
    return undefined;
  }
}

/**
 * Called in a worker thread: answers every task with the result of `handler`, whose `signal` is aborted if the task is cancelled.
 * `transfer` lists the objects in a result that are moved to the caller instead of copied.
 */
export function handleTasks<Task, Result>(
  handler: (task: Task, signal: AbortSignal) => Result | Promise<Result>,
  transfer: (result: Result) => readonly Transferable[] = () => [],
): void {
  const port = parentPort;
  if (!port) throw new Error('handleTasks is for modules that a WorkerPool loads');
  const procFolder = ownProcFolder();
  let running = new AbortController();
  const onMessage = async (message: WorkerMessage<Task>) => {
    if ('abort' in message) {
      running.abort();
      return;
    }
    running = new AbortController();
    if (procFolder !== undefined) workerData[0] = cpuMs(procFolder) ?? Infinity;
    try {
      const result = await handler(message.task, running.signal);
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
  // Runs after the calling module and all modules that import it are loaded.
  setImmediate(() => {
    port.postMessage({ loaded: true, procFolder } satisfies Reply<Result>);
    port.on('message', onMessage);
  });
}

/** `external` counts the memory of WebAssembly and of array buffers; array buffers are collected. */
function exceedsWasmLimit(): boolean {
  const { external, arrayBuffers } = process.memoryUsage();
  return external - arrayBuffers > MAX_WASM_BYTES;
}

/** Serializes an error with at most `depth` of its causes. */
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

/** The functions of a thread, by the `kind` of the tasks that they handle. */
type TaskHandlers = Record<string, (task: never) => unknown>;

type TaskOf<Handlers extends TaskHandlers, Kind extends keyof Handlers> = Parameters<Handlers[Kind]>[0] & {
  kind: Kind;
};
type ResultOf<Handlers extends TaskHandlers, Kind extends keyof Handlers> = Awaited<
  ReturnType<Handlers[Kind]>
>;

/**
 * A `WorkerPool` whose module calls `handleTasksByKind` with functions of the type `Handlers`, so that the type of a result follows from
 * its task.
 */
export class TaskPool<Handlers extends TaskHandlers> extends WorkerPool<unknown, unknown> {
  override run<Kind extends keyof Handlers>(
    task: TaskOf<Handlers, Kind>,
    options?: RunOptions,
  ): Promise<ResultOf<Handlers, Kind>> {
    return super.run(task, options) as Promise<ResultOf<Handlers, Kind>>;
  }
}

/** The side of the thread. `transfer` lists the objects of a result that move to the caller instead of being copied. */
export function handleTasksByKind<Handlers extends TaskHandlers>(
  handlers: Handlers,
  transfer: (result: ResultOf<Handlers, keyof Handlers>) => readonly Transferable[],
): void {
  handleTasks<{ kind: keyof Handlers }, ResultOf<Handlers, keyof Handlers>>(
    (task) => handlers[task.kind](task as never) as ResultOf<Handlers, keyof Handlers>,
    transfer,
  );
}

/** Copies an array to shared memory, so that it can be sent to threads without another copy. */
export function copyToSharedMemory<T extends Float32Array | Uint16Array | Uint8Array | Int32Array>(
  values: T,
): T {
  const copy = new (values.constructor as new (buffer: SharedArrayBuffer) => T)(
    new SharedArrayBuffer(values.byteLength),
  );
  copy.set(values);
  return copy;
}
