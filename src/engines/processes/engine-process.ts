/** The parent's half of the request/response protocol with the child processes in which an engine runs. */
import type { ChildProcess } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import type { Duplex } from 'node:stream';
import { fromErrorDocument, messageOf } from '../../errors.js';
import type { EngineName } from '../load-engine.js';
import { type ForkOptions, forkWithEngine } from './fork-engine.js';
import type { Handler, Handlers, Reply, Request } from './serve-requests.js';

/** How long after the exit of a child its last messages and error output are awaited. */
const DRAIN_TIMEOUT_MS = 1000;
/** How much of the error output is kept, in characters. */
const MAX_STDERR_LENGTH = 8192;
/** How much of a line of error output goes into a message, in characters. */
const MAX_LINE_LENGTH = 300;

/** The process ended before it answered. The message says how: a signal or exit code, and the error that it printed. */
export class ProcessEnded extends Error {
  override readonly name = 'ProcessEnded';
}

export interface EngineProcessOptions extends ForkOptions {
  /** Keeps the child's error output from this process's own. */
  quiet?: boolean;
}

export interface RequestOptions<Progress> {
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
  /** Removes what the request has added to its signal. */
  release: () => void;
  resolve: (result: never) => void;
  reject: (error: unknown) => void;
}

/**
 * A child process that answers requests, one at a time. `H` lists what it answers; its script calls `serveRequests`.
 *
 * Invariants:
 * - Every request settles exactly once: by the child's result or error, the end of the process, an abort, or a failure to send.
 * - No event of the child can throw in this process, before or after its end.
 * - Once `alive` is false it stays false, and the process has ended or is being killed.
 * - The child ends when this process ends, because its channel then closes.
 */
export class EngineProcess<H extends Handlers> {
  /** Undefined if the system could not start it. */
  private readonly child: ChildProcess | undefined;
  private pending: Pending | undefined;
  /** The end of the error output since the last request was sent. */
  private stderr = '';
  private isDead = false;
  /** Whether a request was given up whose replies may still arrive. They must not answer a later one. */
  private hasAbandoned = false;
  /** Set when nothing more can come from the child. */
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
    child.on('error', (error) => this.finish(error.message));
    child.on('exit', (code, signal) => {
      this.isDead = true;
      const finish = () => this.finish(this.endOf(code, signal));
      // The last messages and error output may still be on their way; but a pipe that nobody reads may never close.
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

  /** True if it can take a request, now or after the one that it is busy with. */
  get alive(): boolean {
    return !this.isDead && this.child?.connected === true;
  }

  get busy(): boolean {
    return this.pending !== undefined;
  }

  /** The stream at a file descriptor of the child, from 4 on; see `ForkOptions.streams`. None if the process could not be started. */
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

  /** Kills the process. A request that it is busy with rejects with ProcessEnded. */
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
      // It cannot be serialized. The child has seen nothing of it.
      this.collectStderr()?.reject(error);
    }
  }

  private receive(reply: Reply): void {
    if (this.hasAbandoned) return;
    if ('result' in reply) this.collectStderr()?.resolve(reply.result as never);
    else if ('error' in reply) this.collectStderr()?.reject(fromErrorDocument(reply.error));
    else
      try {
        this.pending?.onProgress?.(reply.progress as never);
      } catch (error) {
        this.abandon(error);
      }
  }

  /** The child goes on with a request that is no longer wanted: only its end stops it. */
  private abandon(reason: unknown): void {
    this.hasAbandoned = true;
    this.close();
    this.collectStderr()?.reject(reason);
  }

  private finish(how: string): void {
    this.close();
    this.ended ??= new ProcessEnded(how);
    this.collectStderr()?.reject(this.ended);
  }

  private collectStderr(): Pending | undefined {
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

/** The first line that begins with the name of an error, as Node and V8 print it before a stack; else the last line. */
function errorLine(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const line = lines.find((text) => /^(\w*Error\b|FATAL ERROR)/.test(text)) ?? lines.at(-1) ?? '';
  return line.slice(0, MAX_LINE_LENGTH);
}
