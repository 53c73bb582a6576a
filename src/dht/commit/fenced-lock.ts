import {
  type CoordinationStore,
  compareAndSet,
  documentOf,
  KeptLease,
  type PutValue,
  pagesOf,
  withPrefix,
} from '../../coordination/index.js';
import { claimed } from '../errors.js';

const PREFIX = 'claim/';
const TTL = 60;
/** Claims that are forgotten together; etcd takes 128 operations in a transaction. */
const PAGE = 50;

/** What the key of a claim holds: who works, and after the commit its number. */
interface ClaimDocument {
  holder: string;
  /** The number that the holder's versions begin with, if it is not the fence: see `nextFence`, and commits after the first one. */
  first?: number;
  done?: number;
  fence?: number;
  /** The segment that was committed. */
  segment?: string;
}

/** A claim as others see it. */
export interface ClaimState {
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
export class Claim {
  private finished = false;

  constructor(
    readonly name: string,
    readonly holder: string,
    readonly fence: number,
    private readonly lease: KeptLease,
  ) {}

  /** Aborted when the claim is lost: what is made under it can no longer be committed. */
  get lost(): AbortSignal {
    return this.lease.lost;
  }

  /** True after the claim's only commit. */
  get isCommitted(): boolean {
    return this.finished;
  }

  /** Gives the claim back, if it was not committed. */
  async release(): Promise<void> {
    if (!this.finished) await this.lease.end();
  }

  /** After its commit, which has taken the key from the lease; the lease ends by itself. */
  finish(): void {
    this.finished = true;
    this.lease.stop();
  }
}

/** The key of a claim, for the transaction that commits it. */
export const claimKeyOf = (name: string) => PREFIX + name;

/** The value of a claim's key after commit `done` of `segment`. */
export function doneValue({ holder, fence }: Claim, done: number, segment: string): string {
  return JSON.stringify({ holder, fence, done, segment } satisfies ClaimDocument);
}

/**
 * TW_DHT_CLAIMED while another holds it. `holder` says who works, for the message that others get; `ttl` is how many seconds a dead
 * holder blocks the name; `first` is the number with which the holder's versions begin, if it is not the fence of this claim.
 */
export async function claim(
  store: CoordinationStore,
  name: string,
  holder: string,
  { ttl = TTL, first }: { ttl?: number; first?: number } = {},
): Promise<Claim> {
  const lease = await KeptLease.grant(store, ttl);
  try {
    const value = JSON.stringify({ holder, ...(first && { first }) } satisfies ClaimDocument);
    for (let revision = 0; ; ) {
      const { set, current } = await compareAndSet(store, {
        ...{ key: claimKeyOf(name), value, revision },
        lease: lease.id,
      });
      if (set) return new Claim(name, holder, current!.modRevision, lease);
      const other = current && claimStateOf(current);
      if (other && other.done === undefined) throw claimed(name, other.holder);
      // The mark of a done claim is replaced, or has just been forgotten.
      revision = current?.modRevision ?? 0;
    }
  } catch (error) {
    await lease.end();
    throw error;
  }
}

/** The claims whose names begin with `prefix`, held and done. */
export async function listClaims(store: CoordinationStore, prefix: string): Promise<ClaimState[]> {
  const { gets } = await store.read([withPrefix(claimKeyOf(prefix))]);
  return gets[0]!.kvs.map(claimStateOf);
}

/** The claim on all of a collection. */
export const wholeCollection = (collection: string) => `collection/${collection}`;

/** Throws what `busy` returns if a claim `name` is held, or, if `name` ends with a slash, one whose name begins with it. */
export async function requireNoClaim(
  store: CoordinationStore,
  name: string,
  busy: (other: ClaimState) => Error,
): Promise<void> {
  const isMeant = (other: ClaimState) => name.endsWith('/') || other.name === name;
  const claims = await listClaims(store, name);
  const other = claims.find((one) => one.done === undefined && isMeant(one));
  if (other) throw busy(other);
}

/**
 * Deletes the marks of done claims up to commit `upTo`, when a checkpoint holds their commits. Returns how many. What is claimed
 * again meanwhile stays.
 */
export function forgetDoneClaims(store: CoordinationStore, upTo: number): Promise<number> {
  return forgetClaims(store, ({ done = Infinity }) => done <= upTo);
}

/** Ends the claims of holders that are surely gone, so that nobody waits for their leases. Returns how many. */
export function endClaimsOf(store: CoordinationStore, isGone: (holder: string) => boolean): Promise<number> {
  return forgetClaims(store, ({ holder, done }) => done === undefined && isGone(holder));
}

async function forgetClaims(
  store: CoordinationStore,
  which: (claim: ClaimState) => boolean,
): Promise<number> {
  let forgotten = 0;
  for await (const kvs of pagesOf(store, PREFIX, PAGE)) {
    const gone = kvs.filter((kv) => which(claimStateOf(kv)));
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
export const holderOf = ({ id, url }: { id: string; url: string }) => `${id} at ${url}`;

/** Whether a claim is that of a node, wherever it was then. */
export const isHolder = (id: string) => (holder: string) => holder.split(' ', 1)[0] === id;

/** What a claim's key says. TW_DHT_DOCUMENT_DAMAGED. */
export function claimStateOf(kv: PutValue): ClaimState {
  const found = documentOf<ClaimDocument>(kv, ['holder']);
  const { holder, done, segment, fence = kv.modRevision, first = fence } = found;
  return { name: kv.key.slice(PREFIX.length), holder, fence, first, done, segment };
}
