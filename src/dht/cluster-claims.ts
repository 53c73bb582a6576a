/** Claims and commits of a node that is one of many: see `Claims` of the storage. */
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../errors.js';
import {
  type Catalogue,
  type Change,
  type Claim,
  type Commit,
  type CountedClaims,
  collectionBusy,
  inLanes,
  type ObjectStore,
  type RecordEdit,
  requireSameCells,
  type Storage,
  sceneBusy,
} from '../storage/index.js';
import { segmentName } from './checkpoint.js';
import { type ClaimState, type Claim as HeldClaim, listClaims, claim as takeClaim } from './claims.js';
import {
  type CollectionKey,
  changeCollection,
  fixCollection,
  readCollection,
  unfixCollection,
} from './collection-keys.js';
import type { CommitLog, CommittedEntry } from './commit-log.js';
import type { CoordinationStore } from './coordination/store.js';
import { collectionChanged, commitNotNoted, otherWriter, outcomeUnknown } from './errors.js';
import { Histogram } from './histogram.js';
import { LogCopies } from './log-copies.js';
import type { Replica } from './replica.js';
import { nextFence } from './restorations.js';
import { encodeSegment } from './segment.js';
import { SlotSet } from './slot-set.js';
import type { PrefixLengths } from './slots.js';

type CollectionEdit = Extract<RecordEdit, { table: 'collections' }>;

export interface ClusterClaimsOptions {
  /** Its files are what is stored. */
  storage: Pick<Storage, 'dir' | 'catalogue' | 'keepInCache'>;
  coordination: CoordinationStore;
  log: CommitLog;
  objects: ObjectStore;
  replica: Replica;
  prefixLengths: PrefixLengths;
  /** Who claims, for the message that others get. */
  holder: string;
}

/** How long a commit of its own takes to be applied here at most, and its copy to be put, ms. */
const PATIENCE = 60_000;
/** Between two tries to put the copy of a log entry, ms. */
const COPY_AGAIN = 500;
/** Of a commit that changes a collection's record, while others do. */
const MOST_TRIES = 20;
/** Bounds of the classes that commits are counted in, seconds. */
const COMMIT_TIMES = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Files on their way to the store at once. */
const LANES = 16;

/**
 * Invariants: a claim's version begins with its fence or its `first`, which the claim's key contains while the claim is held and
 * which grows from claim to claim, even across restorations of etcd; a commit is appended to the log only by a claim that is
 * still held, and after its files and its segment are in the store; `build` reads a catalogue that holds every commit
 * that was acknowledged before.
 */
export class ClusterClaims implements CountedClaims {
  heldCount = 0;
  /** From the records of a commit to its acknowledgement, seconds. */
  readonly commitTimes = new Histogram(COMMIT_TIMES);
  private readonly copies: LogCopies;

  constructor(private readonly options: ClusterClaimsOptions) {
    this.copies = new LogCopies(options.log, options.objects);
  }

  get prefixLengths(): PrefixLengths {
    return this.options.prefixLengths;
  }

  get catalogue(): Catalogue {
    return this.options.storage.catalogue;
  }

  /** The scene as it was committed last is here. */
  async scene(collection: string, scene: string): Promise<Claim> {
    await this.requireNoClaim(wholeCollection(collection), () => collectionBusy(collection));
    return this.takeUpToDate(`scene/${collection}/${scene}`);
  }

  /** From now on no commit that adds to the collection goes through, and those before it are here. */
  async collection(collection: string): Promise<Claim> {
    const prefix = `scene/${collection}/`;
    await this.requireNoClaim(prefix, ({ name }) => sceneBusy(collection, name.slice(prefix.length)));
    return this.takeUpToDate(wholeCollection(collection), () => this.unfix(collection));
  }

  /** All that was committed before the claim, and before the end of `first`, is applied here. */
  private async takeUpToDate(name: string, first?: () => Promise<unknown>): Promise<Claim> {
    const claim = await this.take(name);
    try {
      await first?.();
      await this.options.replica.catchUp();
      return claim;
    } catch (error) {
      await claim.release();
      throw error;
    }
  }

  /** `name` is that of a claim, or, where it ends with a slash, the beginning of several. */
  private async requireNoClaim(name: string, busy: (other: ClaimState) => Error): Promise<void> {
    const others = await listClaims(this.options.coordination, name);
    const isMeant = (other: ClaimState) => name.endsWith('/') || other.name === name;
    const other = others.find((one) => one.done === undefined && isMeant(one));
    if (other) throw busy(other);
  }

  shared(): Promise<Claim> {
    return this.take(`shared/${randomUUID()}`);
  }

  private async take(name: string): Promise<Claim> {
    const { coordination, holder } = this.options;
    const begin = await nextFence(coordination);
    let held = await takeClaim(coordination, name, holder, { first: begin });
    const first = begin ?? held.fence;
    this.heldCount++;
    let isReleased = false;
    let isUsed = false;
    let stored: string[] = [];
    // A claim commits once; who commits several times goes on with another.
    const current = async () => {
      if (isUsed) held = await takeClaim(coordination, name, holder, { first });
      isUsed = false;
      return held;
    };
    return {
      version: versionOf(first),
      // The folder is a cache of the store.
      isOnlyCopy: false,
      store: async (folders) => {
        await this.store(folders, (await current()).lost);
        stored.push(...folders);
      },
      commit: async (build, also) => {
        isUsed = await this.commit(await current(), build, also);
        await this.options.storage.keepInCache(stored);
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
    await inLanes(files, LANES, async (name) => {
      await objects.put(name, { file: join(dir, name) }, { signal });
    });
  }

  /** Whether anything was committed. */
  private async commit(held: HeldClaim, build: () => Promise<Commit>, also: Change[] = []): Promise<boolean> {
    const { storage, replica } = this.options;
    let commit: Commit;
    for (let tries = 0; ; tries++) {
      await replica.catchUp();
      commit = await build();
      if (isEmpty(commit) || (await this.tryCommit(held, commit))) break;
      if (tries === MOST_TRIES) throw collectionChanged(commit.edits![0]!.key);
    }
    // What else goes wrong must not look as if nothing were committed.
    if (also.length > 0)
      await storage.catalogue.write(also).catch((error) => {
        throw commitNotNoted.because(error, held.name, storage.dir, messageOf(error));
      });
    return !isEmpty(commit);
  }

  /** False where another has changed the collection that this commit was to change. */
  private async tryCommit(held: HeldClaim, commit: Commit): Promise<boolean> {
    const { log, objects, replica, prefixLengths } = this.options;
    this.copies.requireSole();
    const begun = performance.now();
    const change = commit.edits?.find((edit): edit is CollectionEdit => edit.table === 'collections');
    const collection = change ? await this.changeKey(change, held) : await this.keyOf(commit);
    if (collection === 'changed') return false;
    const { bytes, slots } = encodeSegment(commit, prefixLengths);
    const segment = `${held.fence}-${randomUUID()}`;
    await objects.put(segmentName(segment), bytes, { signal: held.lost });
    replica.remember(segment, commit);
    try {
      const entry = { segment, slots: new SlotSet(slots).toText() };
      const seq = await log.commit(held, entry, collection);
      const committed: CommittedEntry = { seq, ...entry, claim: held.name, fence: held.fence };
      // What goes wrong with that goes wrong again, and is told, where the log is followed.
      replica.applyOwn(committed).catch(() => undefined);
      await Promise.all([this.copy(committed), replica.waitFor(seq, PATIENCE)]);
      this.commitTimes.observe((performance.now() - begun) / 1e3);
      return true;
    } catch (error) {
      if (change && collectionChanged.is(error)) return false;
      throw error;
    }
  }

  /** The commit is made and seen by all: a store that is away for a while must not make it look as if it had failed. */
  private async copy(entry: CommittedEntry): Promise<void> {
    for (const begun = performance.now(); ; await sleep(COPY_AGAIN))
      try {
        await this.copies.copy(entry);
        return;
      } catch (error) {
        if (otherWriter.is(error)) throw error;
        if (performance.now() - begun > PATIENCE)
          throw outcomeUnknown.because(
            error,
            `commit ${entry.seq}`,
            this.options.objects.url,
            messageOf(error),
          );
      }
  }

  /** The key of the collection that gets tiles, to be compared: where it goes meanwhile, they do not come. */
  private async keyOf({ added = [] }: Commit): Promise<CollectionKey | undefined> {
    if (added.length === 0) return undefined;
    const { collection } = added[0]!;
    const known = await readCollection(this.options.coordination, collection);
    return known ?? (await this.fixAgain(collection));
  }

  /** Where a collection was to be deleted, and its deletion has ended half-way, it has its record but no key. */
  private async fixAgain(id: string): Promise<CollectionKey> {
    await this.requireNoClaim(wholeCollection(id), () => collectionBusy(id));
    const record = await this.catalogue.collections.get(id);
    if (!record) throw collectionChanged(id);
    const { grid, precision } = record;
    return fixCollection(this.options.coordination, id, { grid, precision });
  }

  /** Whether there was a key. */
  private async unfix(id: string): Promise<boolean> {
    const { coordination } = this.options;
    let found = false;
    for (;;) {
      const known = await readCollection(coordination, id);
      if (!known) return found;
      found = true;
      await unfixCollection(coordination, known);
    }
  }

  /**
   * The key of a collection whose record changes. Changing it makes every other commit that relies on it fail, also that of
   * another who changes it at the same time. Of a record that goes there is no key any more.
   */
  private async changeKey(
    { key: id, record }: CollectionEdit,
    { fence }: HeldClaim,
  ): Promise<CollectionKey | undefined | 'changed'> {
    const { coordination } = this.options;
    // Whoever has come back to it meanwhile is seen by what is built next.
    if (record === null) return (await this.unfix(id)) ? 'changed' : undefined;
    let known = await readCollection(coordination, id);
    if (!known && (await this.catalogue.collections.has(id))) known = await this.fixAgain(id);
    const { grid, precision } = record;
    const wanted = { grid, precision, fence };
    if (!known) {
      const fixed = await fixCollection(coordination, id, wanted);
      return fixed.fixed['fence'] === fence ? fixed : 'changed';
    }
    requireSameCells({ id, ...known.fixed }, record);
    const { changed, current } = await changeCollection(coordination, known, wanted);
    return changed ? current : 'changed';
  }
}

/** The claim on all of a collection. */
const wholeCollection = (collection: string) => `collection/${collection}`;

const isEmpty = ({ removed = [], added = [], edits = [] }: Commit) =>
  removed.length + added.length + edits.length === 0;

/** In 11 digits, so that versions sort as the numbers do. */
function versionOf(first: number): string {
  return `${first.toString(36).padStart(11, '0')}${randomUUID().replaceAll('-', '').slice(0, 6)}`;
}
