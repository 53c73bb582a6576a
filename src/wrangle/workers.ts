import { WorkerPool } from '../raster/index.js';
import type { WrangleResult, WrangleTask } from './tasks.js';

/** Threads that make tiles of tiles; started once and kept. */
export class WrangleWorkers {
  private readonly pool: WorkerPool<WrangleTask, WrangleResult>;

  constructor(threads: number) {
    this.pool = new WorkerPool(new URL('./worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  make(task: WrangleTask, signal?: AbortSignal): Promise<WrangleResult> {
    return this.pool.run(task, { signal });
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}
