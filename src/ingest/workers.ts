import { WorkerPool } from '../raster/index.js';
import type { DecodeTask } from './row-window.js';
import type {
  AssessTask,
  BlankTask,
  CutResult,
  CutTask,
  IngestResult,
  IngestTask,
  MaskResult,
} from './tasks.js';

/** Threads that decode source rows, cut cells and make their files; started once and kept. */
export class IngestWorkers {
  private readonly pool: WorkerPool<IngestTask, IngestResult>;

  constructor(threads: number) {
    this.pool = new WorkerPool(new URL('./worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  async decode(task: DecodeTask, signal?: AbortSignal): Promise<void> {
    await this.pool.run(task, { signal });
  }

  /** Null where the cell holds nothing of the group. */
  cut(task: CutTask, signal?: AbortSignal): Promise<CutResult | null> {
    return this.pool.run(task, { signal }) as Promise<CutResult | null>;
  }

  blank(task: BlankTask, signal?: AbortSignal): Promise<CutResult> {
    return this.pool.run(task, { signal }) as Promise<CutResult>;
  }

  assess(task: AssessTask, signal?: AbortSignal): Promise<MaskResult> {
    return this.pool.run(task, { signal }) as Promise<MaskResult>;
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}
