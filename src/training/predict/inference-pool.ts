/** Child processes that apply models to tiles, several at once. */
import type { MadeTile, TileMaker } from '../../derive/index.js';
import { type EngineName, EnginePool, type Handler, resultOrFailure } from '../../engines/index.js';
import { predictionFailed } from '../errors.js';
import type { PredictTask } from './predict-task.js';

export type PredictionHandlers = { predict: Handler<PredictTask, MadeTile | null> };

/** Close it when done. */
export class InferencePool implements TileMaker<PredictTask> {
  private readonly pool: EnginePool<PredictionHandlers>;

  constructor(
    engine: EngineName,
    readonly threads: number,
  ) {
    this.pool = new EnginePool(new URL('./inference-worker.js', import.meta.url), engine, threads);
  }

  /** A child that dies fails its tile alone. Throws TW_TRAIN_PREDICT, the signal's reason, and what the child throws. */
  make(task: PredictTask, signal: AbortSignal): Promise<MadeTile | null> {
    return this.pool.run(signal, (child) =>
      resultOrFailure(child.request('predict', task, { signal }), predictionFailed),
    );
  }

  /** Call it when no task runs or waits. */
  close(): void {
    this.pool.close();
  }
}
