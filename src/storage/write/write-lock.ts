/** Who may change what, and how a change is made. */
import type { Catalogue, CatalogueChange } from '../catalogue/catalogue.js';
import type { Commit } from '../catalogue/commit.js';
import type { CommitApplier } from '../catalogue/commit-applier.js';
import { collectionBusy, sceneBusy } from '../errors.js';
import { newVersion } from '../files/names.js';

/** The right to change something. Its holder releases it, once. */
export interface WriteLock {
  /** Version for what is written under it. Of two claims of one thing the later one has the later version. */
  readonly version: string;
  /** Whether what is written under it here is all that there is of it, so that it must outlast a power cut. */
  readonly requiresFsync: boolean;
  /** Whether a commit under it has failed that may be made all the same: then its files stay until the next open. */
  readonly isUncertain: boolean;
  /** Makes published version folders durable for all who may read them. */
  upload(folders: string[]): Promise<void>;
  /**
   * Makes visible what `build` says, in one synced batch in which `also` changes as well. No other commit comes between what
   * `build` reads of the catalogue and the change; where one has, it is called again.
   */
  commit(build: () => Promise<Commit>, also?: CatalogueChange[]): Promise<void>;
  release(): Promise<void>;
}

export interface LockManager {
  /** What is known here; `build` reads it. */
  readonly catalogue: Catalogue;
  /** Nobody else writes or deletes the scene meanwhile. Throws TW_STORAGE_SCENE_BUSY and TW_STORAGE_COLLECTION_BUSY. */
  lockScene(collection: string, scene: string): Promise<WriteLock>;
  /** Nobody else writes or deletes a scene of the collection meanwhile. Throws the same. */
  lockCollection(collection: string): Promise<WriteLock>;
  /** Of changes that only have to be whole. */
  lockShared(): Promise<WriteLock>;
}

export interface CountedLockManager extends LockManager {
  /** How many are held here now. */
  readonly heldCount: number;
}

/**
 * Claims of a node that is alone.
 * Invariant: `held` has each scene (`<collection>/<scene>`) and collection (`<collection>/`) that is claimed; of two that
 * would disturb each other, one at most.
 */
export class LocalLockManager implements LockManager {
  private readonly held = new Set<string>();

  constructor(private readonly commits: CommitApplier) {}

  get catalogue(): Catalogue {
    return this.commits.catalogue;
  }

  async lockScene(collection: string, scene: string): Promise<WriteLock> {
    if (this.held.has(`${collection}/`)) throw collectionBusy(collection);
    return this.acquire(`${collection}/${scene}`, () => sceneBusy(collection, scene));
  }

  async lockCollection(collection: string): Promise<WriteLock> {
    const key = `${collection}/`;
    const scene = [...this.held].find((other) => other.startsWith(key) && other !== key);
    if (scene !== undefined) throw sceneBusy(collection, scene.slice(key.length));
    return this.acquire(key, () => collectionBusy(collection));
  }

  async lockShared(): Promise<WriteLock> {
    return this.createLock(async () => {});
  }

  private acquire(key: string, busy: () => Error): WriteLock {
    if (this.held.has(key)) throw busy();
    this.held.add(key);
    return this.createLock(async () => {
      this.held.delete(key);
    });
  }

  private createLock(release: () => Promise<void>): WriteLock {
    const { commits } = this;
    return {
      version: newVersion(),
      requiresFsync: true,
      isUncertain: false,
      // They lie where all readers look.
      upload: async () => {},
      commit: (build, also) => commits.serialize(async () => commits.apply(await build(), also)),
      release,
    };
  }
}
