import { setTimeout as sleep } from 'node:timers/promises';
import {
  type CoordinationStore,
  compareAndSet,
  type KeyValue,
  Lease,
  parseJsonValue,
  prefixRange,
  type StoredValue,
  type Watch,
  watchLoop,
} from '../../coordination/index.js';
import { TilewrightError } from '../../errors.js';
import { nodeIdTaken } from '../errors.js';

/** A running node, as it tells the others. */
export interface Member {
  id: string;
  url: string;
  zone: string;
  /** Its share of the tiles, beside those of the others. */
  weight: number;
  software: string;
  /** Of the cluster's documents that it writes. */
  format: number;
}

export interface MembershipEvents {
  /** The others take the node for dead; it tries to come back by itself. */
  lost(): void;
  back(): void;
  /** It cannot come back: TW_DHT_NODE_ID_TAKEN. Any other error: it keeps trying, and reports each error code once. */
  failed(error: unknown): void;
}

const PREFIX = 'members/';
const FIELDS: (keyof Member)[] = ['url', 'zone', 'weight', 'software', 'format'];
/** Seconds after which a node that is dead or cut off is no member any more. */
const LEASE_TTL_S = 3;
/** How long a node waits for the end of the lease that it had before it was started again, ms. */
const OLD_LEASE_TIMEOUT_MS = 4000;
const OLD_LEASE_POLL_MS = 200;
/** Wait after a failed attempt to come back. */
const RETRY_DELAY_MS = 500;

/**
 * A node among the members.
 *
 * Invariant: a node id is that of one process at a time, since its key is created only if absent and dies with that process's lease.
 */
export class Membership {
  private hasLeft = false;

  private constructor(
    private readonly store: CoordinationStore,
    private readonly member: Member,
    private readonly events: MembershipEvents,
    private lease: Lease,
  ) {
    this.rejoinWhenLost();
  }

  /** TW_DHT_NODE_ID_TAKEN where another process keeps this id for longer than an old lease of ours could last. */
  static async join(store: CoordinationStore, member: Member, events: MembershipEvents): Promise<Membership> {
    return new Membership(store, member, events, await register(store, member));
  }

  /** Since when the store has not answered, ms since 1970; undefined where it does. What it tells of others is as of then. */
  get disconnectedSince(): number | undefined {
    const { lastRenewedAt } = this.lease;
    return Date.now() - lastRenewedAt > LEASE_TTL_S * 1000 ? lastRenewedAt : undefined;
  }

  /** No member any more, at once. */
  async leave(): Promise<void> {
    this.hasLeft = true;
    await this.lease.revoke();
  }

  private rejoinWhenLost(): void {
    const { lost } = this.lease;
    if (lost.aborted) void this.rejoin();
    else lost.addEventListener('abort', () => void this.rejoin(), { once: true });
  }

  private async rejoin(): Promise<void> {
    this.events.lost();
    const told = new Set<unknown>();
    while (!this.hasLeft) {
      try {
        this.lease = await register(this.store, this.member);
        break;
      } catch (error) {
        const kind = error instanceof TilewrightError ? error.code : error;
        if (!told.has(kind)) this.events.failed(error);
        told.add(kind);
        // Only another process with this id is there to stay. Whatever else is wrong with the store may pass.
        if (nodeIdTaken.is(error)) return;
        await sleep(RETRY_DELAY_MS, undefined, { ref: false });
      }
    }
    if (this.hasLeft) return this.lease.revoke();
    this.rejoinWhenLost();
    this.events.back();
  }
}

async function register(store: CoordinationStore, { id, ...told }: Member): Promise<Lease> {
  let deadline = Infinity;
  const lease = await Lease.grant(store, LEASE_TTL_S);
  try {
    for (;;) {
      const key = PREFIX + id;
      const value = JSON.stringify(told);
      const { set, current } = await compareAndSet(store, { key, value, revision: 0, lease: lease.id });
      if (set) return lease;
      // The time in which etcd did not answer does not count.
      deadline = Math.min(deadline, performance.now() + OLD_LEASE_TIMEOUT_MS);
      if (performance.now() >= deadline) throw nodeIdTaken(id, decode(current!).url);
      await sleep(OLD_LEASE_POLL_MS);
    }
  } catch (error) {
    await lease.revoke();
    throw error;
  }
}

/** All members, by id. A serializable read may be a little old, and is answered without most servers, too. */
export async function listMembers(
  store: CoordinationStore,
  options: { serializable?: boolean } = {},
): Promise<Member[]> {
  return (await readMembers(store, options)).map(decode);
}

export interface MembersChange {
  members: Member[];
  joined: Member[];
  /** A node that was started again since the last change is among both. */
  left: Member[];
}

/** Tells the members at first (all have joined) and after every change. */
export function watchMembers(
  store: CoordinationStore,
  changed: (change: MembersChange) => void,
  failed: (error: unknown) => void,
): Watch {
  let known: KeyValue[] | undefined;
  const read = async () => {
    const before = known ?? [];
    const now = await readMembers(store);
    const joined = without(now, before).map(decode);
    const left = without(before, now).map(decode);
    if (known && joined.length + left.length === 0) return;
    known = now;
    changed({ members: now.map(decode), joined, left });
  };
  return watchLoop(store, prefixRange(PREFIX), read, failed);
}

/** Those of `some` that are not among `others`; a key that was deleted and put again is another one. */
function without(some: KeyValue[], others: KeyValue[]): KeyValue[] {
  const revisions = new Set(others.map(({ createRevision }) => createRevision));
  return some.filter(({ createRevision }) => !revisions.has(createRevision));
}

async function readMembers(
  store: CoordinationStore,
  options: { serializable?: boolean } = {},
): Promise<KeyValue[]> {
  return (await store.read([prefixRange(PREFIX)], options)).gets[0]!.kvs;
}

function decode(kv: StoredValue): Member {
  return { ...parseJsonValue<Member>(kv, FIELDS), id: kv.key.slice(PREFIX.length) };
}
