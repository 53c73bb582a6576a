/** Child processes that apply models to tiles, several at once. */
import { Slots } from '../../jobs/index.js';
import type { MadeTile, TileMaker } from '../../wrangle/index.js';
import type { EngineName } from '../engine/load-engine.js';
import { predictionFailed } from '../errors.js';
import { EngineProcess, ProcessEnded } from '../workers/engine-process.js';
import type { Handler } from '../workers/serve-requests.js';
import type { PredictTask } from './predict-tile.js';

export type PredictionHandlers = { predict: Handler<PredictTask, MadeTile | null> };

/** Invariants: at most `threads` processes are alive, each busy with at most one task; a dead one gets no task. Close it when done. */
export class Predictors implements TileMaker<PredictTask> {
  private children: EngineProcess<PredictionHandlers>[] = [];
  private readonly slots: Slots;

  constructor(
    private readonly engine: EngineName,
    readonly threads: number,
  ) {
    this.slots = new Slots(threads);
  }

  /** A child that dies fails its tile alone. Throws TW_TRAIN_PREDICT, the signal's reason, and what the child throws. */
  async make(task: PredictTask, signal: AbortSignal): Promise<MadeTile | null> {
    try {
      return await this.slots.run(signal, () => this.idleChild().request('predict', task, { signal }));
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error;
      const reason = `its process ended with ${error.message}, most often for want of memory`;
      throw predictionFailed.because(error, reason);
    }
  }

  /** Call it when no task runs or waits. */
  close(): void {
    for (const child of this.children) child.close();
  }

  private idleChild(): EngineProcess<PredictionHandlers> {
    this.children = this.children.filter(({ alive }) => alive);
    const idle = this.children.find(({ busy }) => !busy);
    if (idle) return idle;
    const child = new EngineProcess<PredictionHandlers>(new URL('./worker.js', import.meta.url), this.engine);
    this.children.push(child);
    return child;
  }
}
