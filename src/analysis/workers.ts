import { WorkerPool } from '../raster/index.js';
import type { MadeTile } from '../wrangle/index.js';
import type { WholeSums } from './band-statistics.js';
import type { Components, ComponentsTask } from './components.js';
import type { AnalysisResult, AnalysisTask, SumsTask, TransformTask } from './tasks.js';

/** Threads that read spectra of tiles; started once and kept. */
export class AnalysisWorkers {
  private readonly pool: WorkerPool<AnalysisTask, AnalysisResult>;

  constructor(threads: number) {
    this.pool = new WorkerPool(new URL('./worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  sums(task: SumsTask, signal?: AbortSignal): Promise<WholeSums> {
    return this.pool.run(task, { signal }) as Promise<WholeSums>;
  }

  components(task: ComponentsTask, signal?: AbortSignal): Promise<Components> {
    return this.pool.run(task, { signal }) as Promise<Components>;
  }

  /** Null if no pixel of the tile is clear and holds data in every band. */
  make(task: TransformTask, signal?: AbortSignal): Promise<MadeTile | null> {
    return this.pool.run(task, { signal }) as Promise<MadeTile | null>;
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}
