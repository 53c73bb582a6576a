import {
  type CoordinationStore,
  compareAndSet,
  Lease,
  parseJsonValue,
  prefixRange,
  type StoredValue,
  scanPrefix,
} from '../../coordination/index.js';
import { lockHeld } from '../errors.js';

const LOCK_PREFIX = 'claim/';
const LEASE_TTL_S = 60;
/** Claims that are forgotten together; etcd takes 128 operations in a transaction. */
const DELETE_BATCH = 50;

/** What the key of a claim holds: who works, and after the commit its number. */
interface LockDocument {
  holder: string;
  /** The number that the holder's versions begin with, if it is not the fence: see `nextFenceInEpoch`, and commits after the first one. */
  first?: number;
  done?: number;
  fence?: number;
  /** The segment that was committed. */
  segment?: string;
}

/** A claim as others see it. */
export interface LockState {
  name: string;
  holder: string;
  /** Of the claim; also after its commit. */
  fence: number;
  /** The number with which the versions of its holder begin. */
  first: number;
  /** Number of its commit; undefined while it is worked on. */
  done: number | undefined;
  /** The segment of its commit. */
  segment: string | undefined;
}

/**
 * The right to write a scene (`<collection>/<scene>`) or a share of a job (`<job>/<share>`): of one holder at a time, until its
 * commit, its release or the end of its lease.
 *
 * Invariant: `fence` is the revision of the put that made the claim, so it is larger than that of every earlier claim of that name and
 * is never used again. The key keeps that `modRevision` while the claim holds, and a commit compares it. (The revision that
 * created the key would not do: a claim that follows a finished one replaces it.)
 */
export class FencedLock {
  private hasEnded = false;

  constructor(
    readonly name: string,
    readonly holder: string,
    readonly fence: number,
    private readonly lease: Lease,
  ) {}

  /** Aborted when the claim is lost: what is made under it can no longer be committed. */
  get lost(): AbortSignal {
    return this.lease.lost;
  }

  /** True after the claim's only commit. */
  get isCommitted(): boolean {
    return this.hasEnded;
  }

  /** Gives the claim back, if it was not committed. */
  async release(): Promise<void> {
    if (!this.hasEnded) await this.lease.revoke();
  }

  /** After its commit, which has taken the key from the lease; the lease ends by itself. */
  markCommitted(): void {
    this.hasEnded = true;
    this.lease.stopRenewing();
  }
}

/** The key of a claim, for the transaction that commits it. */
export const lockKey = (name: string) => LOCK_PREFIX + name;

/** The value of a claim's key after commit `done` of `segment`. */
export function committedMarker({ holder, fence }: FencedLock, done: number, segment: string): string {
  return JSON.stringify({ holder, fence, done, segment } satisfies LockDocument);
}

/**
 * TW_DHT_CLAIMED while another holds it. `holder` says who works, for the message that others get; `ttl` is how many seconds a dead
 * holder blocks the name; `first` is the number with which the holder's versions begin, if it is not the fence of this claim.
 */
export async function acquireLock(
  store: CoordinationStore,
  name: string,
  holder: string,
  { ttl = LEASE_TTL_S, first }: { ttl?: number; first?: number } = {},
): Promise<FencedLock> {
  const lease = await Lease.grant(store, ttl);
  try {
    const value = JSON.stringify({ holder, ...(first && { first }) } satisfies LockDocument);
    for (let revision = 0; ; ) {
      const { set, current } = await compareAndSet(store, {
        ...{ key: lockKey(name), value, revision },
        lease: lease.id,
      });
      if (set) return new FencedLock(name, holder, current!.modRevision, lease);
      const other = current && parseLock(current);
      if (other && other.done === undefined) throw lockHeld(name, other.holder);
      // The mark of a done claim is replaced, or has just been forgotten.
      revision = current?.modRevision ?? 0;
    }
  } catch (error) {
    await lease.revoke();
    throw error;
  }
}

/** The claims whose names begin with `prefix`, held and done. */
export async function listLocks(store: CoordinationStore, prefix: string): Promise<LockState[]> {
  const { gets } = await store.read([prefixRange(lockKey(prefix))]);
  return gets[0]!.kvs.map(parseLock);
}

/** The claim on all of a collection. */
export const collectionLockName = (collection: string) => `collection/${collection}`;

/** Throws what `busy` returns if a claim `name` is held, or, if `name` ends with a slash, one whose name begins with it. */
export async function requireUnlocked(
  store: CoordinationStore,
  name: string,
  busy: (other: LockState) => Error,
): Promise<void> {
  const isMeant = (other: LockState) => name.endsWith('/') || other.name === name;
  const claims = await listLocks(store, name);
  const other = claims.find((one) => one.done === undefined && isMeant(one));
  if (other) throw busy(other);
}

/**
 * Deletes the marks of done claims up to commit `upTo`, when a checkpoint holds their commits. Returns how many. What is claimed
 * again meanwhile stays.
 */
export function pruneCommittedLocks(store: CoordinationStore, upTo: number): Promise<number> {
  return deleteLocks(store, ({ done = Infinity }) => done <= upTo);
}

/** Ends the claims of holders that are surely gone, so that nobody waits for their leases. Returns how many. */
export function revokeLocksOf(
  store: CoordinationStore,
  isGone: (holder: string) => boolean,
): Promise<number> {
  return deleteLocks(store, ({ holder, done }) => done === undefined && isGone(holder));
}

async function deleteLocks(store: CoordinationStore, which: (claim: LockState) => boolean): Promise<number> {
  let forgotten = 0;
  for await (const kvs of scanPrefix(store, LOCK_PREFIX, DELETE_BATCH)) {
    const gone = kvs.filter((kv) => which(parseLock(kv)));
    if (gone.length > 0) {
      const { succeeded } = await store.transact({
        compare: gone.map(({ key, modRevision }) => ({ key, modRevision })),
        success: gone.map(({ key }) => ({ op: 'delete', key })),
      });
      if (succeeded) forgotten += gone.length;
    }
  }
  return forgotten;
}

/** Who claims, for the message that others get. */
export const ownerLabel = ({ id, url }: { id: string; url: string }) => `${id} at ${url}`;

/** Whether a claim is that of a node, wherever it was then. */
export const isOwnedBy = (id: string) => (holder: string) => holder.split(' ', 1)[0] === id;

/** What a claim's key says. TW_DHT_DOCUMENT_DAMAGED. */
export function parseLock(kv: StoredValue): LockState {
  const found = parseJsonValue<LockDocument>(kv, ['holder']);
  const { holder, done, segment, fence = kv.modRevision, first = fence } = found;
  return { name: kv.key.slice(LOCK_PREFIX.length), holder, fence, first, done, segment };
}
