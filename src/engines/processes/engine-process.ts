/** Parent side of the request/response protocol with the child processes in which an engine runs. */
import type { ChildProcess } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import type { Duplex } from 'node:stream';
import { fromErrorDocument, messageOf } from '../../errors.js';
import type { EngineName } from '../load-engine.js';
import { type ForkOptions, forkWithEngine } from './fork-engine.js';
import type { Handler, Handlers, Reply, Request } from './serve-engine-requests.js';

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
