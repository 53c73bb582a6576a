import { Slots } from '../jobs/index.js';
import { WorkerPool } from '../raster/index.js';
import type {
  AssessTask,
  BlankTask,
  CubeResult,
  CubeTask,
  CutResult,
  CutTask,
  DecodeTask,
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
 * Invariant: no more than `processes` threads wait for a process of GDAL.
 */
export class IngestWorkers {
  private readonly pool: WorkerPool<IngestTask, IngestResult>;
  private readonly gdal: Slots;
  /** Processes of GDAL at once: as many as the memory has room for, and threads. */
  readonly processes: number;

  constructor(threads: number, memory: number) {
    const room = Math.floor((GDAL_SHARE * memory) / GDAL_BYTES);
    this.processes = Math.max(1, Math.min(threads, room));
    this.gdal = new Slots(this.processes);
    this.pool = new WorkerPool(new URL('./worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  async decode(task: DecodeTask, signal: AbortSignal = new AbortController().signal): Promise<void> {
    const run = () => this.pool.run(task, { signal });
    const throughGdal = task.reads.some(({ header }) => header.blocks.reader === 'gdal');
    await (throughGdal ? this.gdal.run(signal, run) : run());
  }

  /** Null where the cell holds nothing of the group. */
  cut(task: CutTask, signal?: AbortSignal): Promise<CutResult | null> {
    return this.pool.run(task, { signal }) as Promise<CutResult | null>;
  }

  /** Null where the cell holds nothing of the cube. */
  cube(task: CubeTask, signal?: AbortSignal): Promise<CubeResult | null> {
    return this.pool.run(task, { signal }) as Promise<CubeResult | null>;
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
