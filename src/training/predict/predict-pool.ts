/** Child processes that apply models to tiles in parallel. */
import type { MadeTile, TileMaker } from '../../derive/index.js';
import { type EngineName, EnginePool, type Handler, resultOrFailure } from '../../engines/index.js';
import { predictionFailed } from '../errors.js';
import type { PredictTask } from './predict-task.js';

export type PredictionHandlers = { predict: Handler<PredictTask, MadeTile | null> };

/** The caller must close it. */
export class PredictPool implements TileMaker<PredictTask> {
  private readonly pool: EnginePool<PredictionHandlers>;

  constructor(
    engine: EngineName,
    readonly threads: number,
  ) {
    this.pool = new EnginePool(new URL('./predict-worker.js', import.meta.url), engine, threads);
  }

  /** If a child dies, only its tile fails. Throws TW_TRAIN_PREDICT, the reason of the signal, and the errors of the child. */
  make(task: PredictTask, signal: AbortSignal): Promise<MadeTile | null> {
    return this.pool.run(signal, (child) =>
      resultOrFailure(child.request('predict', task, { signal }), predictionFailed),
    );
  }

  /** Call it only when no task is running or waiting. */
  close(): void {
    this.pool.close();
  }
}
