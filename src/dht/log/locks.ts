/** Write locks and commits of a cluster node: see `LockManager` of the storage. */
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import {
  type CountedLockManager,
  collectionBusy,
  type Storage,
  sceneBusy,
  type WriteLock,
} from '../../storage/index.js';
import type { PrefixLengths } from '../slots.js';
import { Committer, type CommitterOptions, deleteSchema, readSchema } from './committer.js';
import { acquireLock, collectionLockName, nextFenceInEpoch, requireUnlocked } from './fenced-lock.js';

interface ClusterLockManagerOptions extends CommitterOptions {
  /** The source of the files to upload. */
  storage: Pick<Storage, 'dir' | 'catalogue' | 'addToCache'>;
  /** Identifies this node in the error messages of other nodes. */
  ownerLabel: string;
  /** The number of the restore that wrote the keys of the coordination store; 0 if there was none. */
  epoch?: number;
}

/** Files that are uploaded at the same time. */
const CONCURRENT_UPLOADS = 16;

/**
 * Invariant: a version begins with the `fence` or the `first` of its lock. The key of a held lock contains this number, and it grows from
 * lock to lock, even across restores of etcd.
 */
export class ClusterLockManager implements CountedLockManager {
  heldCount = 0;
  private readonly committer: Committer;

  constructor(private readonly options: ClusterLockManagerOptions) {
    this.committer = new Committer(options);
  }

  get prefixLengths(): PrefixLengths {
    return this.options.prefixLengths;
  }

  /** When the lock is granted, the last committed state of the scene is applied locally. */
  async lockScene(collection: string, scene: string): Promise<WriteLock> {
    const { coordination } = this.options;
    await requireUnlocked(coordination, collectionLockName(collection), () => collectionBusy(collection));
    return this.acquireAndCatchUp(`scene/${collection}/${scene}`, collection);
  }

  /** When the lock is granted, no commit that adds to the collection can follow, and all earlier ones are applied locally. */
  async lockCollection(collection: string): Promise<WriteLock> {
    const { coordination } = this.options;
    const prefix = `scene/${collection}/`;
    await requireUnlocked(coordination, prefix, ({ name }) =>
      sceneBusy(collection, name.slice(prefix.length)),
    );
    return this.acquireAndCatchUp(collectionLockName(collection), collection, () =>
      this.deleteSchema(collection),
    );
  }

  lockShared(): Promise<WriteLock> {
    return this.acquire(`shared/${randomUUID()}`);
  }

  /** When this resolves, everything that was committed before the lock, and before the end of `first`, is applied locally. */
  private async acquireAndCatchUp(
    name: string,
    collection: string,
    first = async () => {},
  ): Promise<WriteLock> {
    const lock = await this.acquire(name, collection);
    try {
      await first();
      await this.options.replica.catchUp();
      return lock;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** `collection` is the one that the commits under this lock change, if that is known. */
  private async acquire(name: string, collection?: string): Promise<WriteLock> {
    const { coordination, ownerLabel, storage, epoch = 0 } = this.options;
    const committer = this.committer;
    const begin = epoch > 0 ? await nextFenceInEpoch(coordination, epoch) : undefined;
    let held = await acquireLock(coordination, name, ownerLabel, { first: begin });
    const first = begin ?? held.fence;
    this.heldCount++;
    let isReleased = false;
    let isUncertain = false;
    let stored: string[] = [];
    // A lock commits once; the next commit takes another lock with the same name.
    const current = async () => {
      await committer.resolveOutcome(held);
      if (held.isCommitted) held = await acquireLock(coordination, name, ownerLabel, { first });
      return held;
    };
    return {
      version: versionOf(first),
      // The folder is a cache of the object store.
      requiresFsync: false,
      get isUncertain() {
        return isUncertain;
      },
      upload: async (folders) => {
        await this.upload(folders, (await current()).lost);
        for (const folder of folders) stored.push(folder);
      },
      commit: async (build, also) => {
        await committer.commit(await current(), build, also, collection).catch((error) => {
          isUncertain ||= held.isCommitted || committer.isUncertain(held);
          throw error;
        });
        await storage.addToCache(stored);
        stored = [];
      },
      release: () => {
        if (!isReleased) this.heldCount--;
        isReleased = true;
        return held.release();
      },
    };
  }

  joinLock(version: string): WriteLock {
    const { storage } = this.options;
    const stored: string[] = [];
    let isReleased = false;
    this.heldCount++;
    return {
      version: siblingVersion(version),
      requiresFsync: false,
      isUncertain: false,
      upload: async (folders) => {
        await this.upload(folders);
        for (const folder of folders) stored.push(folder);
      },
      commit: async (_, also = []) => {
        await storage.catalogue.write(also);
        await storage.addToCache(stored);
      },
      release: async () => {
        if (!isReleased) this.heldCount--;
        isReleased = true;
      },
    };
  }

  private async upload(folders: string[], signal?: AbortSignal): Promise<void> {
    const { storage, objects } = this.options;
    const { dir } = storage;
    const files: string[] = [];
    for (const folder of folders)
      for (const file of await readdir(join(dir, folder))) files.push(`${folder}/${file}`);
    await mapConcurrent(files, CONCURRENT_UPLOADS, async (name) => {
      await objects.put(name, { file: join(dir, name) }, { signal });
    });
  }

  /** From then on, commits that rely on the collection fail. */
  private async deleteSchema(id: string): Promise<void> {
    const { coordination } = this.options;
    for (;;) {
      const known = await readSchema(coordination, id);
      if (!known || (await deleteSchema(coordination, known))) return;
    }
  }
}

/** Digits of the number in a version, so that versions sort like their numbers. */
const NUMBER_DIGITS = 11;

function versionOf(first: number): string {
  return withRandomEnd(first.toString(36).padStart(NUMBER_DIGITS, '0'));
}

/** Another version with the same number, so that garbage collection keeps its objects under the same lock. */
const siblingVersion = (version: string): string => withRandomEnd(version.slice(0, NUMBER_DIGITS));

const withRandomEnd = (digits: string) => `${digits}${randomUUID().replaceAll('-', '').slice(0, 6)}`;
