/** Child processes with an engine that work side by side, each on one task at a time. */
import { Semaphore } from '../../async/index.js';
import type { EngineName } from '../load-engine.js';
import { EngineProcess, ProcessEnded } from './engine-process.js';
import type { Handlers } from './serve-requests.js';

/** Invariants: at most `threads` processes are alive, each busy with at most one task; a dead one gets no task. Close it when done. */
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

  /** Call it when no task runs or waits. */
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

/** The answer of a process. Throws the error that `failed` makes of the reason if the process ends before it answers. */
export async function resultOrFailure<T>(
  answer: Promise<T>,
  failed: { because(cause: unknown, reason: string): Error },
): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ProcessEnded)) throw error;
    throw failed.because(error, `its process ended with ${error.message}, usually because of too little memory`);
  }
}
