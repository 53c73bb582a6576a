/** Worker threads that are started once and kept. */
import { parentPort, Worker } from 'node:worker_threads';
import { TilewrightError } from '../errors.js';
import { workerDied } from './errors.js';

type Reply<Result> =
  | { ok: true; result: Result }
  | { ok: false; code?: string; status?: number; message: string; stack?: string };

interface Pending<Task, Result> {
  task: Task;
  resolve: (result: Result) => void;
  reject: (error: Error) => void;
}

/**
 * Invariant: each thread has at most one task; tasks wait in the order they came. Threads start with the first tasks, and
 * an idle pool does not hold the process.
 */
export class WorkerPool<Task, Result> {
  private readonly idle: Worker[] = [];
  private readonly busy = new Map<Worker, Pending<Task, Result>>();
  private readonly waiting: Pending<Task, Result>[] = [];
  private closed = false;

  /** `module` calls `serveTasks`. */
  constructor(
    private readonly module: URL,
    private readonly size: number,
  ) {}

  /** The result of one task. An error of the task keeps its code; TW_RASTER_WORKER_DIED where its thread ended. */
  run(task: Task): Promise<Result> {
    if (this.closed) return Promise.reject(workerDied('the pool is closed'));
    return new Promise((resolve, reject) => {
      this.waiting.push({ task, resolve, reject });
      this.dispatch();
    });
  }

  /** Ends the threads; tasks that have not ended are rejected. */
  async close(): Promise<void> {
    this.closed = true;
    const ended = workerDied('the pool is closed');
    for (const { reject } of this.waiting.splice(0)) reject(ended);
    await Promise.all([...this.idle.splice(0), ...this.busy.keys()].map((worker) => worker.terminate()));
  }

  private dispatch(): void {
    while (this.waiting.length > 0) {
      const worker = this.idle.pop() ?? (this.busy.size < this.size ? this.start() : undefined);
      if (!worker) return;
      const next = this.waiting.shift() as Pending<Task, Result>;
      this.busy.set(worker, next);
      worker.ref();
      worker.postMessage(next.task);
    }
  }

  private start(): Worker {
    // geotiff imports the package web-worker, which fails in a thread that has no workerData.
    const worker = new Worker(this.module, { workerData: {} });
    worker.on('message', (reply: Reply<Result>) => {
      const pending = this.busy.get(worker);
      this.busy.delete(worker);
      this.idle.push(worker);
      worker.unref();
      if (reply.ok) pending?.resolve(reply.result);
      else pending?.reject(rebuild(reply));
      this.dispatch();
    });
    let cause: unknown;
    worker.on('error', (error) => {
      cause = error;
    });
    worker.on('exit', (code) => {
      const at = this.idle.indexOf(worker);
      if (at >= 0) this.idle.splice(at, 1);
      this.busy.get(worker)?.reject(workerDied.because(cause, `its thread ended with code ${code}`));
      this.busy.delete(worker);
      if (!this.closed) this.dispatch();
    });
    return worker;
  }
}

function rebuild({ code, status, message, stack }: Exclude<Reply<unknown>, { ok: true }>): Error {
  const error = code && status ? new TilewrightError(code, status, message) : new Error(message);
  if (stack) error.stack = stack;
  return error;
}

/** The thread's side: answers each task with what `handler` returns or throws. */
export function serveTasks<Task, Result>(handler: (task: Task) => Promise<Result>): void {
  const port = parentPort;
  if (!port) throw new Error('serveTasks runs in a worker thread only');
  port.on('message', async (task: Task) => {
    try {
      port.postMessage({ ok: true, result: await handler(task) });
    } catch (error) {
      const { message, stack } = error instanceof Error ? error : new Error(String(error));
      const coded = error instanceof TilewrightError ? { code: error.code, status: error.status } : {};
      port.postMessage({ ok: false, message, stack, ...coded });
    }
  });
}
