import { Slots } from '../jobs/index.js';
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

/** Share of the memory that processes of GDAL may take together, and what one takes at most beside the rows. */
const GDAL_SHARE = 0.4;
const GDAL_BYTES = 100e6;

/**
 * Threads that decode source rows, cut cells and make their files; started once and kept.
 *
 * Invariant: no more threads wait for a process of GDAL than `memory` has room for.
 */
export class IngestWorkers {
  private readonly pool: WorkerPool<IngestTask, IngestResult>;
  private readonly gdal: Slots;

  constructor(threads: number, memory: number) {
    this.gdal = new Slots(Math.max(1, Math.floor((GDAL_SHARE * memory) / GDAL_BYTES)));
    this.pool = new WorkerPool(new URL('./worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  async decode(task: DecodeTask, signal: AbortSignal = new AbortController().signal): Promise<void> {
    const run = () => this.pool.run(task, { signal });
    await (task.header.blocks.reader === 'gdal' ? this.gdal.run(signal, run) : run());
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
