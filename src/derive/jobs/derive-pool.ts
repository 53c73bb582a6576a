import { TaskPool } from '../../async/index.js';
import type { CutTileTask, FillTileTask, MadeTile } from '../derive-tasks.js';
import type { DeriveHandlers } from './derive-worker.js';

/** Threads that make tiles from tiles. They are started once and kept. */
export class DerivePool extends TaskPool<DeriveHandlers> {
  constructor(threads: number) {
    super(new URL('./derive-worker.js', import.meta.url), threads);
  }

  /** Resolves to null if there is no tile to make. */
  make(task: FillTileTask | CutTileTask, signal?: AbortSignal): Promise<MadeTile | null> {
    return this.run(task, { signal });
  }
}
