/** Write locks, and commits under them. */
import type { CatalogueChange } from '../catalogue/index.js';
import { collectionBusy, sceneBusy } from '../errors.js';
import { newVersion } from '../files/index.js';
import type { CommitApplier } from './apply-storage-commit.js';
import type { Commit } from './storage-commit.js';

/** The right to change something. The holder releases it once. */
export interface WriteLock {
  /** Version for files written under the lock. The later of two locks of one thing has the later version. */
  readonly version: string;
  /** True if the local files are the only copy and therefore must be synced. */
  readonly requiresFsync: boolean;
  /** True if a commit under the lock has failed but may have been made: then its files stay until the next open. */
  readonly isUncertain: boolean;
  /** Makes published version folders durable for all readers. */
  upload(folders: string[]): Promise<void>;
  /**
   * Makes the result of `build` visible in one synced batch, together with `also`. No other commit comes between the reads of `build`
   * and the change; if one did, `build` is called again.
   */
  commit(build: () => Promise<Commit>, also?: CatalogueChange[]): Promise<void>;
  release(): Promise<void>;
}

export interface LockManager {
  /** Excludes other writes and deletes of the scene. Throws TW_STORAGE_SCENE_BUSY and TW_STORAGE_COLLECTION_BUSY. */
  lockScene(collection: string, scene: string): Promise<WriteLock>;
  /** Excludes other writes and deletes of all scenes of the collection. Throws the same errors. */
  lockCollection(collection: string): Promise<WriteLock>;
  /** Excludes no other writer: for changes that only need to be atomic. */
  lockShared(): Promise<WriteLock>;
}

export interface CountedLockManager extends LockManager {
  /** Number of locks that this node holds or has joined. */
  readonly heldCount: number;
  /**
   * Joins a lock that another node holds, with the version of that lock. Files that are written under the joined lock are kept as long as
   * the other node holds its lock. The other node commits them; `commit` here only applies `also`.
   */
  joinLock(version: string): WriteLock;
}

/** Runs `work` under a lock and releases the lock. */
export async function withLock<T>(
  lock: Promise<WriteLock>,
  work: (lock: WriteLock) => Promise<T>,
): Promise<T> {
  const held = await lock;
  try {
    return await work(held);
  } finally {
    await held.release();
  }
}

/**
 * Locks of a single node.
 * Invariant: `held` has each locked scene (`<collection>/<scene>`) and collection (`<collection>/`), and no two that exclude
 * each other.
 */
export class LocalLockManager implements LockManager {
  private readonly held = new Set<string>();

  constructor(private readonly commits: CommitApplier) {}

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
    return {
      version: newVersion(),
      requiresFsync: true,
      isUncertain: false,
      // All readers read the data folder.
      upload: async () => {},
      commit: (build, also) => this.commits.serialize(async () => this.commits.apply(await build(), also)),
      release,
    };
  }
}
