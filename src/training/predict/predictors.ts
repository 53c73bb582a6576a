/** Child processes that apply models to tiles, several at once. */
import type { ChildProcess } from 'node:child_process';
import { receivedError, type SentError } from '../../errors.js';
import type { MadeTile, TileMaker } from '../../wrangle/index.js';
import { forkWithEngine } from '../engine/fork.js';
import type { EngineName } from '../engine/load-engine.js';
import { predictionFailed } from '../errors.js';
import type { PredictTask } from './predict-tile.js';

export type PredictAnswer = { made: MadeTile | null } | { error: SentError };

/**
 * Invariant: a child is in `idle`, or busy with one task, or gone; there are never more than `threads`. Close it when done.
 */
export class Predictors implements TileMaker<PredictTask> {
  private readonly children = new Set<ChildProcess>();
  private readonly idle: ChildProcess[] = [];
  private readonly waiting: ((child: ChildProcess) => void)[] = [];

  constructor(
    private readonly engine: EngineName,
    readonly threads: number,
  ) {}

  /** A child that dies fails its tile alone. Throws TW_TRAIN_PREDICT, and what the child says. */
  async make(task: PredictTask, signal: AbortSignal): Promise<MadeTile | null> {
    const child = await this.take();
    try {
      signal.throwIfAborted();
      const answer = await ask(child, task, signal);
      if ('error' in answer) throw receivedError(answer.error);
      return answer.made;
    } finally {
      this.release(child);
    }
  }

  close(): void {
    for (const child of this.children) child.kill('SIGKILL');
  }

  private take(): Promise<ChildProcess> | ChildProcess {
    const child = this.idle.pop();
    if (child) return child;
    if (this.children.size < this.threads) return this.start();
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private start(): ChildProcess {
    const child = forkWithEngine(new URL('./worker.js', import.meta.url), this.engine);
    this.children.add(child);
    return child;
  }

  private release(child: ChildProcess): void {
    let next: ChildProcess | undefined = child;
    if (!child.connected) {
      this.children.delete(child);
      next = this.waiting.length > 0 ? this.start() : undefined;
    }
    if (!next) return;
    const waiting = this.waiting.shift();
    if (waiting) waiting(next);
    else this.idle.push(next);
  }
}

function ask(child: ChildProcess, task: PredictTask, signal: AbortSignal): Promise<PredictAnswer> {
  return new Promise((resolve, reject) => {
    const end = () => {
      child.off('message', onMessage).off('error', onError).off('exit', onExit);
      signal.removeEventListener('abort', onAbort);
    };
    const onMessage = (answer: PredictAnswer) => {
      end();
      resolve(answer);
    };
    const fail = (error: Error) => {
      end();
      child.kill('SIGKILL');
      child.disconnect?.();
      reject(error);
    };
    const onError = (error: Error) => fail(predictionFailed.because(error, error.message));
    const onExit = (code: number | null, ended: string | null) =>
      fail(
        predictionFailed(`its process ended with ${ended ?? `code ${code}`}, most often for want of memory`),
      );
    const onAbort = () => fail(signal.reason);
    child.on('message', onMessage).on('error', onError).on('exit', onExit);
    signal.addEventListener('abort', onAbort);
    child.send(task, (error) => error && onError(error));
  });
}
