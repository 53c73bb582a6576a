/** Orders the scenes of one run that depend on each other. */
import { duplicateScene } from '../errors.js';
import type { Scene } from '../ingest-scene-description.js';
import type { FirstSceneLock } from './first-scene-lock.js';

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
