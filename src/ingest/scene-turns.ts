/** Which of the scenes of one run wait for which. */
import type { Storage } from '../storage/index.js';
import { sceneTwice } from './errors.js';
import type { Scene } from './scene.js';

/** Invariants: of the scenes with one id at most one is ingested; of those of a collection that is not there yet, one at a time. */
export class SceneTurns {
  /** By collection and scene: the input that was ingested, known when all inputs of that id so far have ended. */
  private readonly ingested = new Map<string, Promise<string | undefined>>();
  /** The first scene of each collection that is not there yet: it fixes grid and precision, so the next ones wait for it. */
  private readonly founders = new Map<string, Promise<unknown>>();

  constructor(private readonly storage: Storage) {}

  /** Runs `work` when it is the scene's turn. Throws TW_INGEST_SCENE_TWICE, and what `work` throws. */
  take<T>(collection: string, scene: Scene, work: () => Promise<T>): Promise<T> {
    return this.onlyOnce(collection, scene, () => this.afterFounder(collection, work));
  }

  /** Runs `work` when the collection is there; the first to come makes it. */
  private async afterFounder<T>(collection: string, work: () => Promise<T>): Promise<T> {
    while (!(await this.storage.getCollection(collection))) {
      const founder = this.founders.get(collection);
      if (founder) {
        await founder;
        continue;
      }
      const founding = work();
      this.founders.set(
        collection,
        founding.then(
          () => undefined,
          // Who founds it hears of the failure; who waits tries to found it next.
          () => undefined,
        ),
      );
      try {
        return await founding;
      } finally {
        this.founders.delete(collection);
      }
    }
    return work();
  }

  /**
   * Refuses a scene where an earlier input with the same id was ingested; waits for its end to know: where that one was broken,
   * this may be the sound one.
   */
  private onlyOnce<T>(collection: string, scene: Scene, work: () => Promise<T>): Promise<T> {
    const key = `${collection}/${scene.id}`;
    const earlier = this.ingested.get(key);
    const outcome = (async () => {
      const other = await earlier;
      if (other !== undefined) throw sceneTwice(scene.path, other, scene.id);
      return work();
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
