import { WorkerPool } from '../../async/index.js';
import type { AcquisitionFiles } from '../data/index.js';
import type { FoundClusters } from './cluster-textures.js';
import type { TileTexture } from './tile-texture.js';

interface ClusterTask {
  textures: Float64Array[];
  clusters?: number;
  seed: number;
}

export type TextureTask = { date: AcquisitionFiles } | ClusterTask;
export type TextureResult = TileTexture | FoundClusters;

/** Worker threads that compute textures. They are started once and kept. */
export class TexturePool {
  private readonly pool: WorkerPool<TextureTask, TextureResult>;

  constructor(threads: number) {
    this.pool = new WorkerPool(new URL('./texture-worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.threads;
  }

  /** The date must have red, green and blue. */
  texture(date: AcquisitionFiles, signal: AbortSignal): Promise<TileTexture> {
    return this.pool.run({ date }, { signal }) as Promise<TileTexture>;
  }

  /** See `clusterTextures`. */
  cluster(task: ClusterTask, signal: AbortSignal): Promise<FoundClusters> {
    // It does not check for an abort and has nothing to close, so it is ended immediately.
    return this.pool.run(task, { signal, graceMs: 0 }) as Promise<FoundClusters>;
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}
