/** Write locks, the commits under them, and the version folders of one write. */

import { writeFile } from 'node:fs/promises';
import type { Catalogue, CatalogueChange } from './catalogue.js';
import type { Commit, CommitApplier } from './commit.js';
import { collectionBusy, sceneBusy } from './errors.js';
import { newVersion } from './file-names.js';
import { fsyncPath, publishVersions, removeVersions, stageVersion, writeFileSynced } from './files.js';

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

/** A folder is `planned` before it exists, `staged` while its files are written, and `published` under its final name. */
type FolderState = 'planned' | 'staged' | 'published';

/**
 * Version folders of one write, from before they exist until their records are committed. Invariants, even after a kill at any moment: a
 * version folder of this write is named by a record of `pending` from before it exists until the batch that commits it. So the next open
 * can remove what is left of a write without a walk of the disk, and never removes anything that is committed. A commit names published
 * folders only, and these are durable before.
 */
export class StagedVersions {
  private readonly states = new Map<string, FolderState>();

  constructor(
    private readonly dir: string,
    private readonly catalogue: Catalogue,
    private readonly lock: WriteLock,
  ) {}

  stateOf(folder: string): FolderState | undefined {
    return this.states.get(folder);
  }

  /** The folders in a state. */
  inState(state: FolderState): string[] {
    return [...this.states].filter(([, one]) => one === state).map(([folder]) => folder);
  }

  /** Records durably which folders will be written. Best called with many. */
  async plan(folders: string[]): Promise<void> {
    const { pending } = this.catalogue;
    const since = Date.now();
    await this.catalogue.write(folders.map((folder) => pending.set(folder, { since })));
    this.setState(folders, 'planned');
  }

  /** Creates the folder for the files of a planned version and returns its absolute path. */
  stage(folder: string): Promise<string> {
    this.setState([folder], 'staged');
    return stageVersion(this.dir, folder);
  }

  /** Writes a file into a staging folder, synced if the lock requires it. Throws errors of the file system. */
  writeFile(path: string, bytes: Uint8Array): Promise<void> {
    return this.lock.requiresFsync ? writeFileSynced(path, bytes) : writeFile(path, bytes);
  }

  /** Syncs a file that other code wrote into a staging folder, if the lock requires it. Throws errors of the file system. */
  async syncFile(path: string): Promise<void> {
    if (this.lock.requiresFsync) await fsyncPath(path);
  }

  /** Makes staged folders durable under their final names. Best called with many. */
  async publish(folders: string[]): Promise<void> {
    await publishVersions(this.dir, folders, this.lock.requiresFsync);
    await this.lock.upload(folders);
    this.setState(folders, 'published');
  }

  /** Commits the result of `build`, which names `folders`. These are then no longer part of this write. */
  async commit(folders: string[], build: () => Promise<Commit>): Promise<void> {
    const { pending } = this.catalogue;
    try {
      await this.lock.commit(
        build,
        folders.map((folder) => pending.delete(folder)),
      );
    } catch (error) {
      // Only the next open can tell whether they are committed: until then their files and pending records stay.
      if (this.lock.isUncertain) this.forget(folders);
      throw error;
    }
    this.forget(folders);
  }

  /** Removes the files of folders, which remain planned. */
  async remove(folders: string[]): Promise<void> {
    await removeVersions(this.dir, folders);
    this.setState(folders, 'planned');
  }

  /** Removes the files and pending records of all folders that are not committed. Their writers must have stopped before. */
  async discard(): Promise<void> {
    // After a failed write, only the next open can tell what is committed: the files must stay until then.
    if (this.catalogue.writeError !== undefined || this.states.size === 0) return;
    await this.remove([...this.inState('staged'), ...this.inState('published')]);
    const { pending } = this.catalogue;
    await this.catalogue.write([...this.states.keys()].map((folder) => pending.delete(folder)));
    this.states.clear();
  }

  private setState(folders: string[], state: FolderState): void {
    for (const folder of folders) this.states.set(folder, state);
  }

  private forget(folders: string[]): void {
    for (const folder of folders) this.states.delete(folder);
  }
}
