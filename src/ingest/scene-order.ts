/** Decides which scene waits for which: for an earlier input of the same scene, and for the first scene of a new collection. */

import { Semaphore } from '../async/index.js';
import type { Storage } from '../storage/index.js';
import { duplicateScene } from './errors.js';
import type { Scene } from './scene.js';

/** Invariant: of the scenes of one run with the same id, at most one is ingested. */
export class DuplicateSceneGuard {
  /** By collection and scene: the ingested input; it resolves when all inputs of that id so far have ended. */
  private readonly ingested = new Map<string, Promise<string | undefined>>();

  constructor(
    private readonly firstSceneLock: FirstSceneLock,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Runs `work` when it is the scene's turn. Waits for an earlier input with the same id to end: if it failed, this one may
   * succeed. Throws TW_INGEST_SCENE_TWICE if it was ingested, and the errors of `work`.
   */
  run<T>(collection: string, scene: Scene, work: () => Promise<T>): Promise<T> {
    const key = `${collection}/${scene.id}`;
    const earlier = this.ingested.get(key);
    const outcome = (async () => {
      const other = await earlier;
      if (other !== undefined) throw duplicateScene(scene.path, other, scene.id);
      return this.firstSceneLock.runExclusiveUntilCreated(collection, work, this.signal);
    })();
    this.ingested.set(
      key,
      outcome.then(
        () => scene.path,
        () => earlier,
      ),
    );
    return outcome;
  }
}

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
