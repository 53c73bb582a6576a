/** Which scenes wait for the first one of their collection. */
import { raceAbort } from '../../async/index.js';
import type { Storage } from '../../storage/index.js';

/**
 * Invariant: of the scenes of a collection that is not there yet, one at a time is ingested, whichever jobs they are of. The first
 * fixes the cells, and the pixel sizes that those after it take over.
 */
export class FirstSceneLock {
  /** Resolves when the first scene of a collection has ended, well or not. */
  private readonly founding = new Map<string, Promise<void>>();

  constructor(private readonly storage: Storage) {}

  /** Runs `work` when the collection is there; the first to come makes it. A wait ends where the signal aborts. */
  async runExclusiveUntilCreated<T>(
    collection: string,
    work: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    while (!(await this.storage.getCollection(collection))) {
      const founder = this.founding.get(collection);
      if (founder) {
        await raceAbort(founder, signal);
        continue;
      }
      const founding = work();
      // Who founds it hears of a failure; who waits tries to found it next.
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
