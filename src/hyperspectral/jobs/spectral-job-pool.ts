import { TaskPool } from '../../async/index.js';
import type { MadeTile } from '../../derive/index.js';
import type { MapTask } from '../output-tiles/index.js';
import type { HyperspectralHandlers } from './spectral-job-worker.js';

/** Threads that read the spectra of tiles. They are started once and kept. */
export class HyperspectralPool extends TaskPool<HyperspectralHandlers> {
  constructor(threads: number) {
    super(new URL('./spectral-job-worker.js', import.meta.url), threads);
  }

  /** Returns null if no pixel of the tile is clear and holds data in every band. */
  make(task: MapTask, signal?: AbortSignal): Promise<MadeTile | null> {
    return this.run(task, { signal });
  }
}
