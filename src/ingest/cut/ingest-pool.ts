import { Semaphore, WorkerPool } from '../../async/index.js';
import { bytesPerSample } from '../../raster/index.js';
import type { DescribeOptions, Scene } from '../scene.js';
import type {
  CubeResult,
  CubeTask,
  CutResult,
  DecodeTask,
  DetectCloudTask,
  EmptyTileTask,
  IngestResult,
  IngestTask,
  MaskResult,
  WarpTask,
} from './ingest-tasks.js';

/** Share of the memory that processes of GDAL may take together, and what one takes at most beside the rows. */
const GDAL_MEMORY_FRACTION = 0.4;
const GDAL_PROCESS_BYTES = 100e6;

/** No header takes as long, even those of a product with many files on a busy machine. A process of GDAL that stalls ends before. */
const DESCRIBE_TIMEOUT_MS = 8 * 60_000;
/** A piece of rows may take this long, and in addition as long as a slow decoder on a busy machine takes for its bytes. */
const DECODE_BASE_TIMEOUT_MS = 60_000;
const DECODE_BYTES_PER_MS = 250;
/** Tasks that only read have nothing to close when they are cancelled. */
const READ_GRACE_MS = 2000;

/**
 * Threads that decode source rows, cut cells and make their files; started once and kept.
 *
 * Invariant: no more than `processes` threads decode through GDAL.
 */
export class IngestPool {
  private readonly pool: WorkerPool<IngestTask, IngestResult>;
  private readonly gdal: Semaphore;
  /** Processes of GDAL at once: as many as the memory has room for, and threads. */
  readonly gdalProcesses: number;

  constructor(threads: number, memory: number) {
    const room = Math.floor((GDAL_MEMORY_FRACTION * memory) / GDAL_PROCESS_BYTES);
    this.gdalProcesses = Math.max(1, Math.min(threads, room));
    this.gdal = new Semaphore(this.gdalProcesses);
    this.pool = new WorkerPool(new URL('./ingest-worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  async decode(task: DecodeTask, signal: AbortSignal = new AbortController().signal): Promise<void> {
    const throughGdal = task.reads.some(({ header }) => header.blocks.reader === 'gdal');
    // Processes of GDAL have limits of their own.
    if (throughGdal) await this.gdal.run(() => this.pool.run(task, { signal }), signal);
    else await this.pool.run(task, { signal, graceMs: READ_GRACE_MS, timeLimitMs: decodeTimeoutMs(task) });
  }

  /** As `describeScenes`; also throws TW_RASTER_WORKER_STUCK if that does not end. */
  describe(path: string, options: DescribeOptions, signal: AbortSignal): Promise<Scene[]> {
    const task = { kind: 'describe', path, options } as const;
    return this.pool.run(task, {
      signal,
      graceMs: READ_GRACE_MS,
      timeLimitMs: DESCRIBE_TIMEOUT_MS,
    }) as Promise<Scene[]>;
  }

  /** Null where the cell holds nothing of the group. */
  warp(task: WarpTask, signal?: AbortSignal): Promise<CutResult | null> {
    return this.pool.run(task, { signal }) as Promise<CutResult | null>;
  }

  /** Null where the cell holds nothing of the cube. */
  cube(task: CubeTask, signal?: AbortSignal): Promise<CubeResult | null> {
    return this.pool.run(task, { signal }) as Promise<CubeResult | null>;
  }

  encodeEmptyTile(task: EmptyTileTask, signal?: AbortSignal): Promise<CutResult> {
    return this.pool.run(task, { signal }) as Promise<CutResult>;
  }

  detectCloud(task: DetectCloudTask, signal?: AbortSignal): Promise<MaskResult> {
    return this.pool.run(task, { signal }) as Promise<MaskResult>;
  }

  /** Ends threads that have no task; later tasks start threads again. */
  endThreads(): Promise<void> {
    return this.pool.endThreads();
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}

/** Milliseconds for the blocks of a task, which are decoded as a whole. */
function decodeTimeoutMs({ reads }: DecodeTask): number {
  const bytes = reads.map(({ header, bands, rowStart, rowEnd }) => {
    const rows = rowEnd - rowStart + 2 * header.blocks.height;
    const samples = header.blocks.reader === 'tiff' && !header.blocks.planar ? header.bands : bands.length;
    return rows * header.width * samples * bytesPerSample(header.dataType);
  });
  return DECODE_BASE_TIMEOUT_MS + bytes.reduce((sum, count) => sum + count, 0) / DECODE_BYTES_PER_MS;
}
