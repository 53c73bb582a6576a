/** Makes scenes wait for the first one of their collection. */
import type { Storage } from '../../storage/index.js';

/**
 * Invariant: of the scenes of a collection that does not exist yet, one at a time is ingested, even across jobs. The first one
 * fixes the cells and the pixel sizes for those after it.
 */
export class FirstSceneLock {
  /** Resolves when the first scene of a collection has succeeded or failed. */
  private readonly founding = new Map<string, Promise<void>>();

  constructor(private readonly storage: Storage) {}

  /** Runs `work` when the collection exists; the first caller creates it. A wait ends if the signal aborts. */
  async runExclusiveUntilCreated<T>(
    collection: string,
    work: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    while (!(await this.storage.getCollection(collection))) {
      const founder = this.founding.get(collection);
      if (founder) {
        await onceAborted(founder, signal);
        continue;
      }
      const founding = work();
      // The creator sees the error; the next waiter retries.
      const ended = founding.then(
        () => undefined,
        () => undefined,
      );
      this.founding.set(collection, ended);
      try {
        return await founding;
      } finally {
        this.founding.delete(collection);
      }
    }
    return work();
  }
}

function onceAborted(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    wait.then(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, reject);
  });
}
