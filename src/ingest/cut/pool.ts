/** The threads of ingest, and the limits of their memory and time. */

import { Semaphore, WorkerPool } from '../../async/index.js';
import { bytesPerSample } from '../../raster/index.js';
import type { DescribeOptions, Scene } from '../scene.js';
import type { DecodeTask, IngestResult, IngestResults, IngestTask } from './tasks.js';

/** Fraction of the memory for all GDAL processes, and the largest size of one besides its rows. */
const GDAL_MEMORY_FRACTION = 0.4;
const GDAL_PROCESS_BYTES = 100e6;

/**
 * Limit for describing an input: more than a product of many files needs on a busy machine. GDAL processes time out earlier.
 */
const DESCRIBE_TIMEOUT_MS = 8 * 60_000;
/** Limit for decoding: a base time, and the time of a slow decoder on a busy machine for the bytes. */
const DECODE_BASE_TIMEOUT_MS = 60_000;
const DECODE_BYTES_PER_MS = 250;
/** Tasks that only read have nothing to close when they are cancelled. */
const READ_GRACE_MS = 2000;

/**
 * Threads that decode source rows, cut cells and encode their files; started once and reused.
 *
 * Invariant: at most `gdalProcesses` threads decode through GDAL.
 */
export class IngestPool {
  private readonly pool: WorkerPool<IngestTask, IngestResult>;
  private readonly gdal: Semaphore;
  /** Limit of concurrent GDAL processes, by memory and number of threads. */
  readonly gdalProcesses: number;

  constructor(threads: number, memory: number) {
    const room = Math.floor((GDAL_MEMORY_FRACTION * memory) / GDAL_PROCESS_BYTES);
    this.gdalProcesses = Math.max(1, Math.min(threads, room));
    this.gdal = new Semaphore(this.gdalProcesses);
    this.pool = new WorkerPool(new URL('./worker.bundle.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.threads;
  }

  async decode(task: DecodeTask, signal: AbortSignal = new AbortController().signal): Promise<void> {
    const throughGdal = task.reads.some(({ header }) => header.blocks.reader === 'gdal');
    // GDAL processes have their own limits.
    if (throughGdal) await this.gdal.run(() => this.pool.run(task, { signal }), signal);
    else await this.pool.run(task, { signal, graceMs: READ_GRACE_MS, timeLimitMs: decodeTimeoutMs(task) });
  }

  /** `describeScenes` in a thread; throws TW_RASTER_WORKER_STUCK if it takes too long. */
  describe(path: string, options: DescribeOptions, files: string[], signal: AbortSignal): Promise<Scene[]> {
    const task: IngestTask = { kind: 'describe', path, options, files };
    return this.pool.run(task, {
      signal,
      graceMs: READ_GRACE_MS,
      timeLimitMs: DESCRIBE_TIMEOUT_MS,
    }) as Promise<Scene[]>;
  }

  /** Cuts or makes files of one cell. */
  run<Task extends Exclude<IngestTask, { kind: 'describe' | 'decode' }>>(
    task: Task,
    signal?: AbortSignal,
  ): Promise<IngestResults[Task['kind']]> {
    return this.pool.run(task, { signal }) as Promise<IngestResults[Task['kind']]>;
  }

  /** Ends idle threads; later tasks start threads again. */
  endThreads(): Promise<void> {
    return this.pool.endThreads();
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}

/** Time limit for the blocks of a task, which are decoded completely. */
function decodeTimeoutMs({ reads }: DecodeTask): number {
  const bytes = reads.map(({ header, bands, rowStart, rowEnd }) => {
    const rows = rowEnd - rowStart + 2 * header.blocks.height;
    const samples = header.blocks.reader === 'tiff' && !header.blocks.planar ? header.bands : bands.length;
    return rows * header.width * samples * bytesPerSample(header.dataType);
  });
  return DECODE_BASE_TIMEOUT_MS + bytes.reduce((sum, count) => sum + count, 0) / DECODE_BYTES_PER_MS;
}
