/** Claims and commits of a node that is one of many: see `Claims` of the storage. */
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import type { Histogram } from '../../metrics/index.js';
import {
  type Catalogue,
  type Claim,
  type CountedClaims,
  collectionBusy,
  type Storage,
  sceneBusy,
} from '../../storage/index.js';
import type { PrefixLengths } from '../placement/slots.js';
import { nextFence } from '../recovery/restore-epoch.js';
import { readCollection, unfixCollection } from './collection-schema.js';
import { Committer, type CommitterOptions } from './committer.js';
import { requireNoClaim, claim as takeClaim, wholeCollection } from './fenced-lock.js';

export interface ClusterClaimsOptions extends CommitterOptions {
  /** Its files are what is stored. */
  storage: Pick<Storage, 'dir' | 'catalogue' | 'keepInCache'>;
  /** Names this node in the messages that other claimants get. */
  holder: string;
  /** The number of the restoration that the coordination store's keys are of; 0 if there was none. */
  epoch?: number;
}

/** Files on their way to the store at once. */
const LANES = 16;

/**
 * Invariant: a claim's version begins with its fence or its `first`, which the claim's key contains while the claim is held and
 * which grows from claim to claim, even across restorations of etcd.
 */
export class ClusterClaims implements CountedClaims {
  heldCount = 0;
  private readonly committer: Committer;

  constructor(private readonly options: ClusterClaimsOptions) {
    this.committer = new Committer(options);
  }

  get commitTimes(): Histogram {
    return this.committer.commitTimes;
  }

  get prefixLengths(): PrefixLengths {
    return this.options.prefixLengths;
  }

  get catalogue(): Catalogue {
    return this.options.storage.catalogue;
  }

  /** The scene as it was committed last is here. */
  async scene(collection: string, scene: string): Promise<Claim> {
    const { coordination } = this.options;
    await requireNoClaim(coordination, wholeCollection(collection), () => collectionBusy(collection));
    return this.takeUpToDate(`scene/${collection}/${scene}`, { collection });
  }

  /** From now on no commit that adds to the collection goes through, and those before it are here. */
  async collection(collection: string): Promise<Claim> {
    const { coordination } = this.options;
    const prefix = `scene/${collection}/`;
    await requireNoClaim(coordination, prefix, ({ name }) =>
      sceneBusy(collection, name.slice(prefix.length)),
    );
    const first = () => this.deleteKey(collection);
    return this.takeUpToDate(wholeCollection(collection), { collection, first });
  }

  shared(): Promise<Claim> {
    return this.take(`shared/${randomUUID()}`);
  }

  /** All that was committed before the claim, and before the end of `first`, is applied here. */
  private async takeUpToDate(
    name: string,
    { collection, first }: { collection: string; first?: () => Promise<unknown> },
  ): Promise<Claim> {
    const claim = await this.take(name, collection);
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
  private async take(name: string, collection?: string): Promise<Claim> {
    const { coordination, holder, storage, epoch = 0 } = this.options;
    const { committer } = this;
    const begin = epoch > 0 ? await nextFence(coordination, epoch) : undefined;
    let held = await takeClaim(coordination, name, holder, { first: begin });
    const first = begin ?? held.fence;
    this.heldCount++;
    let isReleased = false;
    let isUncertain = false;
    let stored: string[] = [];
    // A claim commits once; the next commit takes another claim of the same name.
    const current = async () => {
      await committer.settle(held);
      if (held.isCommitted) held = await takeClaim(coordination, name, holder, { first });
      return held;
    };
    return {
      version: versionOf(first),
      // The folder is a cache of the store.
      isOnlyCopy: false,
      get isUncertain() {
        return isUncertain;
      },
      store: async (folders) => {
        await this.store(folders, (await current()).lost);
        for (const folder of folders) stored.push(folder);
      },
      commit: async (build, also) => {
        await committer.commit(await current(), build, also, collection).catch((error) => {
          isUncertain ||= held.isCommitted || committer.isUnsettled(held);
          throw error;
        });
        await storage.keepInCache(stored);
        stored = [];
      },
      release: () => {
        if (!isReleased) this.heldCount--;
        isReleased = true;
        return held.release();
      },
    };
  }

  private async store(folders: string[], signal: AbortSignal): Promise<void> {
    const { storage, objects } = this.options;
    const { dir } = storage;
    const files: string[] = [];
    for (const folder of folders)
      for (const file of await readdir(join(dir, folder))) files.push(`${folder}/${file}`);
    await mapConcurrent(files, LANES, async (name) => {
      await objects.put(name, { file: join(dir, name) }, { signal });
    });
  }

  /** Commits that rely on the collection fail from then on. */
  private async deleteKey(id: string): Promise<void> {
    const { coordination } = this.options;
    for (;;) {
      const known = await readCollection(coordination, id);
      if (!known || (await unfixCollection(coordination, known))) return;
    }
  }
}

/** In 11 digits, so that versions sort as the numbers do. */
function versionOf(first: number): string {
  return `${first.toString(36).padStart(11, '0')}${randomUUID().replaceAll('-', '').slice(0, 6)}`;
}
