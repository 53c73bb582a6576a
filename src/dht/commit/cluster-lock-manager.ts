/** Claims and commits of a node that is one of many: see `Claims` of the storage. */
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import {
  type Catalogue,
  type CountedLockManager,
  collectionBusy,
  type Storage,
  sceneBusy,
  type WriteLock,
} from '../../storage/index.js';
import type { PrefixLengths } from '../placement/slots.js';
import { nextFenceInEpoch } from '../recovery/restore-epoch.js';
import { deleteSchema, readSchema } from './collection-schema.js';
import { Committer, type CommitterOptions } from './committer.js';
import { collectionLockName, requireUnlocked, acquireLock as takeClaim } from './fenced-lock.js';

export interface ClusterLockManagerOptions extends CommitterOptions {
  /** Its files are what is stored. */
  storage: Pick<Storage, 'dir' | 'catalogue' | 'addToCache'>;
  /** Names this node in the messages that other claimants get. */
  ownerLabel: string;
  /** The number of the restoration that the coordination store's keys are of; 0 if there was none. */
  epoch?: number;
}

/** Files on their way to the store at once. */
const CONCURRENCY = 16;

/**
 * Invariant: a claim's version begins with its fence or its `first`, which the claim's key contains while the claim is held and
 * which grows from claim to claim, even across restorations of etcd.
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

  get catalogue(): Catalogue {
    return this.options.storage.catalogue;
  }

  /** The scene as it was committed last is here. */
  async lockScene(collection: string, scene: string): Promise<WriteLock> {
    const { coordination } = this.options;
    await requireUnlocked(coordination, collectionLockName(collection), () => collectionBusy(collection));
    return this.acquireAndCatchUp(`scene/${collection}/${scene}`, { collection });
  }

  /** From now on no commit that adds to the collection goes through, and those before it are here. */
  async lockCollection(collection: string): Promise<WriteLock> {
    const { coordination } = this.options;
    const prefix = `scene/${collection}/`;
    await requireUnlocked(coordination, prefix, ({ name }) =>
      sceneBusy(collection, name.slice(prefix.length)),
    );
    const first = () => this.deleteSchema(collection);
    return this.acquireAndCatchUp(collectionLockName(collection), { collection, first });
  }

  lockShared(): Promise<WriteLock> {
    return this.acquire(`shared/${randomUUID()}`);
  }

  /** All that was committed before the claim, and before the end of `first`, is applied here. */
  private async acquireAndCatchUp(
    name: string,
    { collection, first }: { collection: string; first?: () => Promise<unknown> },
  ): Promise<WriteLock> {
    const claim = await this.acquire(name, collection);
    try {
      await first?.();
      await this.options.replica.catchUp();
      return claim;
    } catch (error) {
      await claim.release();
      throw error;
    }
  }

  /** `collection` is the one that the commits under this claim change, if that is known. */
  private async acquire(name: string, collection?: string): Promise<WriteLock> {
    const { coordination, ownerLabel, storage, epoch = 0 } = this.options;
    const committer = this.committer;
    const begin = epoch > 0 ? await nextFenceInEpoch(coordination, epoch) : undefined;
    let held = await takeClaim(coordination, name, ownerLabel, { first: begin });
    const first = begin ?? held.fence;
    this.heldCount++;
    let isReleased = false;
    let isUncertain = false;
    let stored: string[] = [];
    // A claim commits once; the next commit takes another claim of the same name.
    const current = async () => {
      await committer.resolveOutcome(held);
      if (held.isCommitted) held = await takeClaim(coordination, name, ownerLabel, { first });
      return held;
    };
    return {
      version: versionOf(first),
      // The folder is a cache of the store.
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

  private async upload(folders: string[], signal: AbortSignal): Promise<void> {
    const { storage, objects } = this.options;
    const { dir } = storage;
    const files: string[] = [];
    for (const folder of folders)
      for (const file of await readdir(join(dir, folder))) files.push(`${folder}/${file}`);
    await mapConcurrent(files, CONCURRENCY, async (name) => {
      await objects.put(name, { file: join(dir, name) }, { signal });
    });
  }

  /** Commits that rely on the collection fail from then on. */
  private async deleteSchema(id: string): Promise<void> {
    const { coordination } = this.options;
    for (;;) {
      const known = await readSchema(coordination, id);
      if (!known || (await deleteSchema(coordination, known))) return;
    }
  }
}

/** In 11 digits, so that versions sort as the numbers do. */
function versionOf(first: number): string {
  return `${first.toString(36).padStart(11, '0')}${randomUUID().replaceAll('-', '').slice(0, 6)}`;
}
