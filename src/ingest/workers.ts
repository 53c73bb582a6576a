import { WorkerPool } from '../raster/index.js';
import type { CutResult, IngestTask } from './tasks.js';

/** Threads that decode source rows and cut cells; started once and kept. */
export function startIngestWorkers(threads: number): WorkerPool<IngestTask, CutResult | null> {
  return new WorkerPool(new URL('./worker.js', import.meta.url), threads);
}
