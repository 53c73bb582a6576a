/** Locks with leases in the coordination store, and the fences that the versions of their holders begin with. */

import {
  type CoordinationStore,
  compareAndSet,
  Lease,
  parseJsonValue,
  prefixRange,
  retryUntilAnswered,
  type StoredValue,
  scanPrefix,
} from '../../coordination/index.js';
import { lockHeld } from '../errors.js';

const LOCK_PREFIX = 'claim/';
const LEASE_TTL_S = 60;
/** Locks that are deleted in one transaction; etcd accepts 128 operations. */
const DELETE_BATCH = 50;

/** The value of the key of a lock: its holder and, after the commit, the number of the commit. */
interface LockDocument {
  holder: string;
  /** The number that the versions of the holder begin with, if it is not the fence: see `nextFenceInEpoch`, and commits after the first. */
  first?: number;
  done?: number;
  fence?: number;
  /** The committed segment. */
  segment?: string;
}

/** The state of a lock, as every node can read it. */
interface LockState {
  name: string;
  holder: string;
  /** The fence of the lock, even after its commit. */
  fence: number;
  /** The number that the versions of its holder begin with. */
  first: number;
  /** Number of its commit; undefined before the commit. */
  done: number | undefined;
  /** The segment of its commit. */
  segment: string | undefined;
}

/**
 * The right to write a scene (`<collection>/<scene>`) or to work on a task (`<job>/<share>`): for one holder at a time, until its
 * commit, its release or the end of its lease. Users and keys call it a claim.
 *
 * Invariant: `fence` is the revision of the put that created the lock, so it is larger than that of every earlier lock with that name and
 * is never used again. The key keeps that `modRevision` while the lock is held, and a commit compares it. (The `createRevision` of the
 * key does not work, because a lock that follows a committed one replaces its key.)
 */
export class FencedLock {
  private hasEnded = false;

  constructor(
    readonly name: string,
    readonly holder: string,
    readonly fence: number,
    private readonly lease: Lease,
  ) {}

  /** Aborted when the lock is lost: work under it can no longer be committed. */
  get lost(): AbortSignal {
    return this.lease.lost;
  }

  /** True after the only commit of the lock. */
  get isCommitted(): boolean {
    return this.hasEnded;
  }

  /** Releases the lock if it was not committed. */
  async release(): Promise<void> {
    if (!this.hasEnded) await this.lease.revoke();
  }

  /** Called after the commit, which has detached the key from the lease; the lease then expires. */
  markCommitted(): void {
    this.hasEnded = true;
    this.lease.stopRenewing();
  }
}

/** The key of a lock, for the transaction that commits it. */
export const lockKey = (name: string) => LOCK_PREFIX + name;

/** The value of the key of a lock after commit `done` of `segment`. */
export function committedMarker({ holder, fence }: FencedLock, done: number, segment: string): string {
  return JSON.stringify({ holder, fence, done, segment } satisfies LockDocument);
}

/**
 * Throws TW_DHT_CLAIMED while another holder has the lock. `holder` identifies the caller in error messages; a dead holder blocks the
 * name for `ttl` seconds; `first` is the number that the versions of the holder begin with, if it is not the fence of this lock.
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
        key: lockKey(name),
        value,
        revision,
        lease: lease.id,
      });
      if (set) return new FencedLock(name, holder, current!.modRevision, lease);
      const other = current && parseLock(current);
      if (other && other.done === undefined) throw lockHeld(name, other.holder);
      // The mark of a committed lock is replaced, or has just been deleted.
      revision = current?.modRevision ?? 0;
    }
  } catch (error) {
    await lease.revoke();
    throw error;
  }
}

/** All locks whose names begin with `prefix`, held and committed. */
export async function listLocks(store: CoordinationStore, prefix: string): Promise<LockState[]> {
  const { gets } = await store.read([prefixRange(lockKey(prefix))]);
  return gets[0]!.kvs.map(parseLock);
}

/** The name of the lock on a collection. */
export const collectionLockName = (collection: string) => `collection/${collection}`;

/** Throws the error of `busy` if the lock `name` is held or, if `name` ends with a slash, any lock whose name begins with it. */
export async function requireUnlocked(
  store: CoordinationStore,
  name: string,
  busy: (other: LockState) => Error,
): Promise<void> {
  const matches = (other: LockState) => name.endsWith('/') || other.name === name;
  const locks = await listLocks(store, name);
  const other = locks.find((lock) => lock.done === undefined && matches(lock));
  if (other) throw busy(other);
}

/**
 * Deletes the marks of committed locks up to commit `upTo`, once a checkpoint contains their commits. Returns their number. A lock that was
 * acquired again in the meantime stays.
 */
export function pruneCommittedLocks(store: CoordinationStore, upTo: number): Promise<number> {
  return deleteLocks(store, ({ done = Infinity }) => done <= upTo);
}

/** Revokes the locks of holders that have certainly ended, before their leases expire. Returns the number of revoked locks. */
export function revokeLocksOf(
  store: CoordinationStore,
  matches: (holder: string) => boolean,
): Promise<number> {
  return deleteLocks(store, ({ holder, done }) => done === undefined && matches(holder));
}

async function deleteLocks(store: CoordinationStore, matches: (lock: LockState) => boolean): Promise<number> {
  let deleted = 0;
  for await (const kvs of scanPrefix(store, LOCK_PREFIX, DELETE_BATCH)) {
    const matching = kvs.filter((kv) => matches(parseLock(kv)));
    if (matching.length > 0) {
      const { succeeded } = await store.transact({
        compare: matching.map(({ key, modRevision }) => ({ key, modRevision })),
        success: matching.map(({ key }) => ({ op: 'delete', key })),
      });
      if (succeeded) deleted += matching.length;
    }
  }
  return deleted;
}

/** The holder of a lock, for the error messages of other nodes. */
export const ownerLabel = ({ id, url }: { id: string; url: string }) => `${id} at ${url}`;

/** Matches the holders of locks of a node, at whatever address it was. */
export const isOwnedBy = (id: string) => (holder: string) => holder.split(' ', 1)[0] === id;

/** Parses the state of a lock. TW_DHT_DOCUMENT_DAMAGED. */
export function parseLock(kv: StoredValue): LockState {
  const document = parseJsonValue<LockDocument>(kv, ['holder']);
  const { holder, done, segment, fence = kv.modRevision, first = fence } = document;
  return { name: kv.key.slice(LOCK_PREFIX.length), holder, fence, first, done, segment };
}

/** This key is written only for its revision. */
const FENCE_KEY = 'fence';
/**
 * Revisions of one coordination store stay below this limit: 34 years at 1,000 changes a second. The 53 bits of an integer leave room for
 * 2^13 restores.
 */
const FENCES_PER_EPOCH = 2 ** 40;
const FENCE_TIMEOUT_MS = 30_000;

/**
 * A number for the versions of a new lock in epoch `epoch`. It is larger than that of every earlier lock on this tile store and is never
 * used twice. In epoch 0, before any restore, the fence of the lock is such a number.
 *
 * Fences are revisions, and the revisions of a new etcd begin near 0 again. Without this function, a version that is written after a
 * restore could repeat the name of a stored version, whose bytes caches hold under that name, and would sort before older ones. As in a
 * ZooKeeper zxid, the high part is the epoch and the low part is a revision. It is the revision of a separate put and not the fence of
 * the lock, because the key of the lock must contain the number: garbage collection, even on a node with an older version of the
 * program, keeps all names that begin with a number in a held lock.
 */
export async function nextFenceInEpoch(coordination: CoordinationStore, epoch: number): Promise<number> {
  // If an answer is lost and the put is repeated, one number stays unused.
  const { revision } = await retryUntilAnswered(FENCE_TIMEOUT_MS, (timeoutMs) =>
    coordination.transact({ success: [{ op: 'put', key: FENCE_KEY, value: '' }] }, { timeoutMs }),
  );
  return epoch * FENCES_PER_EPOCH + revision;
}
