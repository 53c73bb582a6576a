import { WorkerPool } from '../async/index.js';
import type { PixelArray } from '../raster/index.js';
import type {
  CutTileTask,
  DeriveTask,
  DeriveTaskResult,
  FillTileTask,
  MadeTile,
  StackTask,
  TensorBandsTask,
} from './derive-tasks.js';

/** Threads that make tiles of tiles; started once and kept. */
export class DerivePool {
  private readonly pool: WorkerPool<DeriveTask, DeriveTaskResult>;

  constructor(threads: number) {
    this.pool = new WorkerPool(new URL('./derive-worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  /** Null where there is nothing to make. */
  make(task: FillTileTask | CutTileTask, signal?: AbortSignal): Promise<MadeTile | null> {
    return this.pool.run(task, { signal }) as Promise<MadeTile | null>;
  }

  readBandsAtSize(task: TensorBandsTask, signal?: AbortSignal): Promise<PixelArray[]> {
    return this.pool.run(task, { signal }) as Promise<PixelArray[]>;
  }

  /** The bytes of a GeoTIFF. The pixels of the image move to the thread. */
  stack(task: StackTask, signal?: AbortSignal): Promise<Uint8Array> {
    const transfer = task.image.bands.map(({ buffer }) => buffer as ArrayBuffer);
    return this.pool.run(task, { signal, transfer }) as Promise<Uint8Array>;
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}
