/** Child processes with an engine that work in parallel, each on one task at a time. */
import { Semaphore } from '../../async/index.js';
import type { EngineName } from '../load-engine.js';
import { EngineProcess, ProcessEnded } from './engine-process.js';
import type { Handlers } from './serve-engine-requests.js';

/**
 * Invariants: at most `threads` processes are alive, each with at most one task; a dead process gets no task. The caller must close the
 * pool.
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
