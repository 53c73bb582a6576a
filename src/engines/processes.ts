/** Child processes in which an engine runs: both sides of their request/response protocol, and pools of them. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Semaphore } from '../async/index.js';
import {
  type ErrorDocument,
  type ErrorMaker,
  fromErrorDocument,
  messageOf,
  TilewrightError,
  toErrorDocument,
} from '../errors.js';
import type { EngineName } from './load.js';

interface ForkOptions {
  /** Threads of the engine, if it can use more than one. */
  threads?: number;
  /** Number of streams besides the channel, from file descriptor 4. */
  streams?: number;
  /**
   * Limit on the memory of the process in bytes: heap, WebAssembly and libraries. On Linux only, where the kernel counts private writable
   * mappings (RLIMIT_DATA). A limit on the address space (RLIMIT_AS) is unsuitable, because V8 reserves far more of it than it uses. Such
   * a process also has no helper threads of V8, so that it uses one core.
   */
  limit?: number;
  /** With a limit: the only core that it may use, one of `allowedCpus`. */
  core?: number;
}

/** Sets the limit, then executes the program. A core dump would be as large as the limit. */
const LIMITED_SCRIPT = 'ulimit -c 0; ulimit -d "$0" && exec "$@"';

/** Runs `script`, which must call `serveRequests`, with the name of the engine as its argument. The caller reads stderr. */
function forkWithEngine(
  script: URL,
  engine: EngineName,
  { threads = 1, streams = 0, limit, core }: ForkOptions = {},
): ChildProcess {
  return fork(fileURLToPath(script), [engine], {
    serialization: 'advanced',
    ...(limit !== undefined && {
      execPath: '/bin/sh',
      execArgv: [
        '-c',
        LIMITED_SCRIPT,
        String(Math.floor(limit / 1024)),
        ...(core === undefined ? [] : ['taskset', '-c', String(core)]),
        process.execPath,
        '--v8-pool-size=0',
      ],
    }),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', ...new Array<'pipe'>(streams).fill('pipe')],
    env: {
      ...process.env,
      // Spinning OpenMP threads would use the cores of the other children; the library reads this only at its start.
      OMP_WAIT_POLICY: 'passive',
      OMP_NUM_THREADS: String(threads),
      TF_CPP_MIN_LOG_LEVEL: '2',
      TF_NUM_INTRAOP_THREADS: String(threads),
      TF_NUM_INTEROP_THREADS: '1',
      // The oneDNN in TensorFlow adds in an order that depends on the number of available cores.
      TF_ENABLE_ONEDNN_OPTS: '0',
      // Otherwise the first child allocates all memory of a GPU.
      TF_FORCE_GPU_ALLOW_GROWTH: 'true',
    },
  });
}

/** Time after the exit of a child in which its last messages and error output are awaited. */
const DRAIN_TIMEOUT_MS = 1000;
/** Maximum number of characters of the error output that are kept. */
const MAX_STDERR_LENGTH = 8192;
/** Maximum number of characters of a line of error output in a message. */
const MAX_LINE_LENGTH = 300;

/** The process ended before it answered. The message contains the signal or exit code, and the error that it printed. */
export class ProcessEnded extends Error {
  override readonly name = 'ProcessEnded';
}

interface EngineProcessOptions extends ForkOptions {
  /** Does not forward the error output of the child to the error output of this process. */
  quiet?: boolean;
}

interface RequestOptions<Progress> {
  /** Kills the process; the request rejects with the signal's reason. */
  signal?: AbortSignal;
  /** If it throws, the process is killed and the request rejects with that error. */
  onProgress?: (progress: Progress) => void;
}

type InputOf<H> = H extends Handler<infer Input, unknown, unknown> ? Input : never;
type ResultOf<H> = H extends (...args: never) => Promise<infer Result> ? Result : never;
type ProgressOf<H> = H extends Handler<never, unknown, infer Progress> ? Progress : never;

interface Pending {
  onProgress: ((progress: never) => void) | undefined;
  /** Removes the listener of the request from its signal. */
  release: () => void;
  resolve: (result: never) => void;
  reject: (error: unknown) => void;
}

/**
 * A child process that answers one request at a time. `H` lists its requests; its script calls `serveRequests`.
 *
 * Invariants:
 * - Every request settles exactly once: by the result or error of the child, the end of the process, an abort, or a failure to send.
 * - No event of the child can throw in this process, before or after its end.
 * - Once `alive` is false it stays false, and the process has ended or is being killed.
 * - The child ends when this process ends, because its channel then closes.
 */
export class EngineProcess<H extends Handlers> {
  /** Undefined if the system could not start it. */
  private readonly child: ChildProcess | undefined;
  private pending: Pending | undefined;
  /** End of the error output since the last request was sent. */
  private stderr = '';
  private isDead = false;
  /** True if a request was abandoned. Its late replies must not answer a later request. */
  private hasAbandoned = false;
  /** Set when no more messages can arrive from the child. */
  private ended: ProcessEnded | undefined;

  /** Never throws: if the process cannot be started, requests reject. */
  constructor(script: URL, engine: EngineName, { quiet = false, ...options }: EngineProcessOptions = {}) {
    let child: ChildProcess;
    try {
      child = forkWithEngine(script, engine, options);
    } catch (error) {
      this.finish(messageOf(error));
      return;
    }
    this.child = child;
    child.on('message', (reply: Reply) => this.receive(reply));
    child.on('disconnect', () => this.close());
    child.on('error', (error) => this.finish(messageOf(error)));
    child.on('exit', (code, signal) => {
      this.isDead = true;
      const finish = () => this.finish(this.endOf(code, signal));
      // The last messages and error output may still be in transit; but a pipe without a reader may never close.
      child.once('close', finish);
      setTimeout(finish, DRAIN_TIMEOUT_MS).unref();
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr = (this.stderr + text).slice(-MAX_STDERR_LENGTH);
      if (!quiet) process.stderr.write(text);
    });
    // If a pipe breaks, the child has ended, or its channel will report it.
    for (const stream of child.stdio ?? []) stream?.on('error', () => undefined);
  }

  /** Undefined if the process could not be started. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** True if it can accept a request, now or after the current one. */
  get alive(): boolean {
    return !this.isDead && this.child?.connected === true;
  }

  get busy(): boolean {
    return this.pending !== undefined;
  }

  /**
   * The stream at a file descriptor of the child, from 4 on; see `ForkOptions.streams`. Undefined if the process could not be started.
   */
  stream(descriptor: number): Duplex | undefined {
    return this.child?.stdio?.[descriptor] as Duplex | undefined;
  }

  /**
   * Resolves to the handler's result. Rejects with the TilewrightError that the child sent, with ProcessEnded, with the signal's reason,
   * or with the error of `send` if `input` cannot be serialized.
   */
  request<Name extends keyof H & string>(
    name: Name,
    input: InputOf<H[Name]>,
    { signal, onProgress }: RequestOptions<ProgressOf<H[Name]>> = {},
  ): Promise<ResultOf<H[Name]>> {
    return new Promise((resolve, reject) => {
      if (this.busy) throw new Error('an engine process answers one request at a time');
      signal?.throwIfAborted();
      if (this.ended) throw this.ended;
      const onAbort = () => this.abandon(signal?.reason);
      // All requests of a job share its signal, and Node warns about more than ten listeners.
      if (signal) setMaxListeners(0, signal);
      signal?.addEventListener('abort', onAbort);
      const release = () => signal?.removeEventListener('abort', onAbort);
      this.pending = { onProgress, release, resolve, reject };
      this.stderr = '';
      this.send({ name, input });
    });
  }

  /** Kills the process. A pending request rejects with ProcessEnded. */
  close(): void {
    this.isDead = true;
    // Without an id there is no process, and libuv would signal our own process group.
    if (this.pid !== undefined) this.child?.kill('SIGKILL');
  }

  private send(request: Request): void {
    // The end of the process settles the request.
    if (!this.alive) {
      this.close();
      return;
    }
    try {
      this.child?.send(request, (error) => {
        if (error) this.close();
      });
    } catch (error) {
      // The request cannot be serialised, and the child has received nothing.
      this.takePending()?.reject(error);
    }
  }

  private receive(reply: Reply): void {
    if (this.hasAbandoned) return;
    if ('result' in reply) this.takePending()?.resolve(reply.result as never);
    else if ('error' in reply) this.takePending()?.reject(fromErrorDocument(reply.error));
    else
      try {
        this.pending?.onProgress?.(reply.progress as never);
      } catch (error) {
        this.abandon(error);
      }
  }

  /** The child would continue with an abandoned request; only ending the process stops it. */
  private abandon(reason: unknown): void {
    this.hasAbandoned = true;
    this.close();
    this.takePending()?.reject(reason);
  }

  private finish(how: string): void {
    this.close();
    this.ended ??= new ProcessEnded(how);
    this.takePending()?.reject(this.ended);
  }

  private takePending(): Pending | undefined {
    const { pending } = this;
    this.pending = undefined;
    pending?.release();
    return pending;
  }

  private endOf(code: number | null, signal: string | null): string {
    const how = signal ?? `exit code ${code}`;
    // A process that is killed prints nothing about it.
    const line = signal === 'SIGKILL' ? '' : errorLine(this.stderr);
    return line === '' ? how : `${how}: ${line}`;
  }
}

/** Returns the first line that starts with the name of an error, as Node and V8 print it before a stack; otherwise the last line. */
function errorLine(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const line = lines.find((text) => /^(\w*Error\b|FATAL ERROR)/.test(text)) ?? lines.at(-1) ?? '';
  return line.slice(0, MAX_LINE_LENGTH);
}

/** Answers one kind of request. `report` sends progress; it resolves when the message has left the process. */
export type Handler<Input, Result, Progress = never> = (
  input: Input,
  report: (progress: Progress) => Promise<void>,
) => Promise<Result>;

/** The requests that a child answers, by name. Inputs, results and progress must be structured-cloneable. */
type Handlers = Record<string, Handler<never, unknown, unknown>>;

interface Request {
  name: string;
  input: unknown;
}

/** Any number of `progress`, then one `result` or `error`. */
type Reply = { progress: unknown } | { result: unknown } | { error: ErrorDocument };

/**
 * The side of the child. Answers the requests of the parent until the channel closes, which ends the process. An error that is not a
 * TilewrightError is sent as `failure`.
 */
export function serveRequests<H extends Handlers>(handlers: H, failure: ErrorMaker<[reason: string]>): void {
  process.on('message', async ({ name, input }: Request) => {
    try {
      await sendToParent({
        result: await handlers[name](input as never, (progress) => sendToParent({ progress })),
      });
    } catch (error) {
      const known = error instanceof TilewrightError ? error : failure.because(error, messageOf(error));
      await sendToParent({ error: toErrorDocument(known) });
    }
  });
  process.on('disconnect', () => process.exit());
}

/** Resolves when the message has been sent, so that a busy child does not delay its messages until it has finished. */
function sendToParent(reply: Reply): Promise<void> {
  return new Promise((resolve) => {
    // If the parent has ended, the channel closes, which ends this process.
    process.send!(reply, () => resolve());
  });
}

/**
 * Child processes with an engine that work in parallel, each on one task at a time. Invariants: at most `threads` processes are alive, each
 * with at most one task; a dead process gets no task. The caller must close the pool.
 */
export class EnginePool<H extends Handlers> {
  private children: EngineProcess<H>[] = [];
  private readonly semaphore: Semaphore;

  constructor(
    private readonly script: URL,
    private readonly engine: EngineName,
    readonly threads: number,
  ) {
    this.semaphore = new Semaphore(threads);
  }

  /** Runs a task in an idle process, and starts one if none is idle. Rejects with the error of the task or the signal's reason. */
  run<T>(signal: AbortSignal, task: (child: EngineProcess<H>) => Promise<T>): Promise<T> {
    return this.semaphore.run(() => task(this.idleChild()), signal);
  }

  /** Call it only when no task is running or waiting. */
  close(): void {
    for (const child of this.children) child.close();
  }

  private idleChild(): EngineProcess<H> {
    this.children = this.children.filter(({ alive }) => alive);
    const idle = this.children.find(({ busy }) => !busy);
    if (idle) return idle;
    const child = new EngineProcess<H>(this.script, this.engine);
    this.children.push(child);
    return child;
  }
}

/** Returns the answer of a process. If the process ends before it answers, throws the error that `failed` creates from the reason. */
export async function resultOrFailure<T>(
  answer: Promise<T>,
  failed: { because(cause: unknown, reason: string): Error },
): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ProcessEnded)) throw error;
    throw failed.because(
      error,
      `its process ended with ${error.message}, usually because of too little memory`,
    );
  }
}

/**
 * Returns the numbers of the cores that this process may use. Empty without `taskset` (util-linux), which reads the affinity and pins
 * children.
 */
export function allowedCpus(): number[] {
  const { status, stdout } = spawnSync('taskset', ['-cp', String(process.pid)], { encoding: 'utf8' });
  if (status !== 0) return [];
  // "pid 12's current affinity list: 0-3,8"
  const list = stdout.slice(stdout.lastIndexOf(':') + 1);
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number) as [number, number?];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}
