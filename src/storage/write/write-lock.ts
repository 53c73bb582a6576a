/** Who may change what, and how a change is made. */
import type { Catalogue, Change } from '../catalogue/catalogue.js';
import type { Commit } from '../catalogue/commit.js';
import type { Commits } from '../catalogue/commit-applier.js';
import { collectionBusy, sceneBusy } from '../errors.js';
import { newVersion } from '../files/names.js';

/** The right to change something. Its holder releases it, once. */
export interface Claim {
  /** Version for what is written under it. Of two claims of one thing the later one has the later version. */
  readonly version: string;
  /** Whether what is written under it here is all that there is of it, so that it must outlast a power cut. */
  readonly isOnlyCopy: boolean;
  /** Whether a commit under it has failed that may be made all the same: then its files stay until the next open. */
  readonly isUncertain: boolean;
  /** Makes published version folders durable for all who may read them. */
  store(folders: string[]): Promise<void>;
  /**
   * Makes visible what `build` says, in one synced batch in which `also` changes as well. No other commit comes between what
   * `build` reads of the catalogue and the change; where one has, it is called again.
   */
  commit(build: () => Promise<Commit>, also?: Change[]): Promise<void>;
  release(): Promise<void>;
}

export interface Claims {
  /** What is known here; `build` reads it. */
  readonly catalogue: Catalogue;
  /** Nobody else writes or deletes the scene meanwhile. Throws TW_STORAGE_SCENE_BUSY and TW_STORAGE_COLLECTION_BUSY. */
  scene(collection: string, scene: string): Promise<Claim>;
  /** Nobody else writes or deletes a scene of the collection meanwhile. Throws the same. */
  collection(collection: string): Promise<Claim>;
  /** Of changes that only have to be whole. */
  shared(): Promise<Claim>;
}

export interface CountedClaims extends Claims {
  /** How many are held here now. */
  readonly heldCount: number;
}

/**
 * Claims of a node that is alone.
 * Invariant: `held` has each scene (`<collection>/<scene>`) and collection (`<collection>/`) that is claimed; of two that
 * would disturb each other, one at most.
 */
export class LocalClaims implements Claims {
  private readonly held = new Set<string>();

  constructor(private readonly commits: Commits) {}

  get catalogue(): Catalogue {
    return this.commits.catalogue;
  }

  async scene(collection: string, scene: string): Promise<Claim> {
    if (this.held.has(`${collection}/`)) throw collectionBusy(collection);
    return this.take(`${collection}/${scene}`, () => sceneBusy(collection, scene));
  }

  async collection(collection: string): Promise<Claim> {
    const key = `${collection}/`;
    const scene = [...this.held].find((other) => other.startsWith(key) && other !== key);
    if (scene !== undefined) throw sceneBusy(collection, scene.slice(key.length));
    return this.take(key, () => collectionBusy(collection));
  }

  async shared(): Promise<Claim> {
    return this.claim(async () => {});
  }

  private take(key: string, busy: () => Error): Claim {
    if (this.held.has(key)) throw busy();
    this.held.add(key);
    return this.claim(async () => {
      this.held.delete(key);
    });
  }

  private claim(release: () => Promise<void>): Claim {
    const { commits } = this;
    return {
      version: newVersion(),
      isOnlyCopy: true,
      isUncertain: false,
      // They lie where all readers look.
      store: async () => {},
      commit: (build, also) => commits.inTurn(async () => commits.apply(await build(), also)),
      release,
    };
  }
}
