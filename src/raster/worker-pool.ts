/** Worker threads that are started once and kept, and the messages to and from them. */
import { parentPort, type Transferable, Worker } from 'node:worker_threads';
import { messageOf, TilewrightError } from '../errors.js';
import { workerDied } from './errors.js';

type Reply<Result> = { result: Result } | { failure: Failure };

/** An error as it crosses between threads. */
interface Failure {
  /** Set for a TilewrightError. */
  known: { code: string; status: number } | undefined;
  name: string;
  message: string;
  stack: string | undefined;
  cause: Failure | undefined;
}

interface Job<Task, Result> {
  task: Task;
  transfer: readonly Transferable[];
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

interface Member<Task, Result> {
  worker: Worker;
  job: Job<Task, Result> | undefined;
}

/**
 * Runs tasks on up to `size` threads, each of which loads the module at `module` (it calls `serveTasks`).
 *
 * Invariants: a thread has at most one task; tasks wait in the order they came, and only while `size` threads are busy; a
 * thread that has been started is kept until `close`, and replaced if it ends. An idle pool does not keep the process alive.
 */
export class WorkerPool<Task, Result> {
  private readonly members = new Set<Member<Task, Result>>();
  private readonly waiting: Job<Task, Result>[] = [];
  private closed = false;

  constructor(
    private readonly module: URL,
    readonly size: number,
  ) {}

  /**
   * Runs a task and resolves to its result. Rejects with the error that the task threw (a TilewrightError keeps its code and
   * status), or TW_RASTER_WORKER_DIED. What is in `transfer` moves to the thread.
   */
  run(task: Task, transfer: readonly Transferable[] = []): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.closed) {
        reject(workerDied('the pool was closed'));
        return;
      }
      this.waiting.push({ task, transfer, resolve, reject });
      this.dispatch();
    });
  }

  /** Ends all threads. Tasks that are not done are rejected. */
  async close(): Promise<void> {
    this.closed = true;
    for (const job of this.waiting.splice(0)) job.reject(workerDied('the pool was closed'));
    await Promise.all([...this.members].map(({ worker }) => worker.terminate()));
  }

  private dispatch(): void {
    while (this.waiting.length > 0) {
      const member = [...this.members].find(({ job }) => !job) ?? this.start();
      if (!member) return;
      this.give(member, this.waiting.shift()!);
    }
  }

  private start(): Member<Task, Result> | undefined {
    if (this.members.size >= this.size) return undefined;
    // A package that decodes rare codecs (web-worker, of geotiff) reads workerData in every thread and fails without it.
    const worker = new Worker(this.module, { workerData: {} });
    worker.unref();
    const member: Member<Task, Result> = { worker, job: undefined };
    let reason = 'it ended';
    worker.on('message', (reply: Reply<Result>) => this.settle(member, reply));
    worker.on('error', (error) => {
      reason = messageOf(error);
    });
    worker.on('exit', (code) => {
      this.members.delete(member);
      member.job?.reject(workerDied(this.closed ? 'the pool was closed' : `${reason} (exit code ${code})`));
      this.dispatch();
    });
    this.members.add(member);
    return member;
  }

  private give(member: Member<Task, Result>, job: Job<Task, Result>): void {
    try {
      member.worker.postMessage(job.task, job.transfer);
    } catch (error) {
      // The task itself cannot be sent to a thread.
      job.reject(error);
      return;
    }
    member.job = job;
    member.worker.ref();
  }

  private settle(member: Member<Task, Result>, reply: Reply<Result>): void {
    const job = member.job;
    member.job = undefined;
    member.worker.unref();
    if ('failure' in reply) job?.reject(errorFrom(reply.failure));
    else job?.resolve(reply.result);
    this.dispatch();
  }
}

/**
 * The side of the thread: answers every task with what `handler` makes of it. `transfer` names what of a result moves to the
 * caller and is not copied.
 */
export function serveTasks<Task, Result>(
  handler: (task: Task) => Result | Promise<Result>,
  transfer: (result: Result) => readonly Transferable[] = () => [],
): void {
  const port = parentPort;
  if (!port) throw new Error('serveTasks is for modules that a WorkerPool loads');
  port.on('message', async (task: Task) => {
    try {
      const result = await handler(task);
      port.postMessage({ result } satisfies Reply<Result>, transfer(result));
    } catch (error) {
      port.postMessage({ failure: failureFrom(error, 5) } satisfies Reply<Result>);
    }
  });
}

/** `depth`: how many causes are kept. */
function failureFrom(error: unknown, depth: number): Failure {
  const known = error instanceof TilewrightError ? { code: error.code, status: error.status } : undefined;
  const { name, stack, cause } =
    error instanceof Error ? error : { name: 'Error', stack: undefined, cause: undefined };
  return {
    known,
    name,
    message: messageOf(error),
    stack,
    cause: cause === undefined || depth === 0 ? undefined : failureFrom(cause, depth - 1),
  };
}

function errorFrom({ known, name, message, stack, cause }: Failure): Error {
  const options = cause === undefined ? {} : { cause: errorFrom(cause) };
  const error = known
    ? new TilewrightError(known.code, known.status, message, options)
    : Object.assign(new Error(message, options), { name });
  if (stack !== undefined) error.stack = stack;
  return error;
}
