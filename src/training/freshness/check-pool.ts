/** Child processes that measure the errors of models on new dates in parallel. */
import { type EngineName, EnginePool, resultOrFailure } from '../../engines/index.js';
import { checkFailed } from '../errors.js';
import type { CheckedDates, CheckHandlers, CheckTask } from './check-task.js';

/** The caller must close it. */
export class CheckPool {
  private readonly pool: EnginePool<CheckHandlers>;

  constructor(
    engine: EngineName,
    readonly threads: number,
  ) {
    this.pool = new EnginePool(new URL('./check-worker.js', import.meta.url), engine, threads);
  }

  /** If a child dies, only its place fails. Throws TW_TRAIN_CHECK, the reason of the signal, and the errors of the child. */
  check(task: CheckTask, signal: AbortSignal): Promise<CheckedDates> {
    return this.pool.run(signal, (child) =>
      resultOrFailure(child.request('check', task, { signal }), checkFailed),
    );
  }

  /** Call it only when no task is running or waiting. */
  close(): void {
    this.pool.close();
  }
}
