/** Makes scenes wait for the first one of their collection. */
import { Semaphore } from '../../async/index.js';
import type { Storage } from '../../storage/index.js';

/**
 * Invariant: of the scenes of a collection that does not exist yet, one at a time is ingested, even across jobs. The first one
 * fixes the cells and the pixel sizes for those after it.
 */
export class FirstSceneLock {
  /** By collection that does not exist yet. */
  private readonly locks = new Map<string, Semaphore>();

  constructor(private readonly storage: Storage) {}

  /** Runs `work` when the collection exists; otherwise one caller at a time tries to create it. A wait ends if the signal aborts. */
  async runExclusiveUntilCreated<T>(
    collection: string,
    work: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    if (await this.storage.catalogue.collections.get(collection)) {
      this.locks.delete(collection);
      return work();
    }
    const lock = this.locks.get(collection) ?? new Semaphore(1);
    this.locks.set(collection, lock);
    const release = await lock.acquire(signal);
    try {
      if (!(await this.storage.catalogue.collections.get(collection))) return await work();
    } finally {
      release();
    }
    return work();
  }
}
