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

/** A running node, as the others see it. */
export interface Member {
  id: string;
  url: string;
  zone: string;
  /** Its weight in the distribution of the tiles, relative to the other nodes. */
  weight: number;
  software: string;
  /** The format of the cluster documents that it writes. */
  format: number;
}

export interface MembershipEvents {
  /** The lease was lost, so other nodes consider this node dead. It tries to rejoin by itself. */
  lost(): void;
  back(): void;
  /** TW_DHT_NODE_ID_TAKEN: the node cannot rejoin. After any other error it keeps trying, and reports each error code once. */
  failed(error: unknown): void;
}

const PREFIX = 'members/';
const FIELDS: (keyof Member)[] = ['url', 'zone', 'weight', 'software', 'format'];
/** Seconds after which a dead or disconnected node is no longer a member. */
const LEASE_TTL_S = 3;
/** How long a restarted node waits for the end of its earlier lease. */
const OLD_LEASE_TIMEOUT_MS = 4000;
const OLD_LEASE_POLL_MS = 200;
/** Wait after a failed attempt to rejoin. */
const RETRY_DELAY_MS = 500;

/**
 * The registration of a node.
 *
 * Invariant: a node id belongs to one process at a time, because its key is created only if absent and expires with the lease of that
 * process.
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

  /** Throws TW_DHT_NODE_ID_TAKEN if another process keeps this id for longer than an earlier lease of this node could last. */
  static async join(store: CoordinationStore, member: Member, events: MembershipEvents): Promise<Membership> {
    return new Membership(store, member, events, await register(store, member));
  }

  /** Time of the last answer of the store, ms since 1970, if it has stopped answering; what it says of other nodes is as of then. */
  get disconnectedSince(): number | undefined {
    const { lastRenewedAt } = this.lease;
    return Date.now() - lastRenewedAt > LEASE_TTL_S * 1000 ? lastRenewedAt : undefined;
  }

  /** Ends the membership immediately. */
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
    const reported = new Set<unknown>();
    while (!this.hasLeft) {
      try {
        this.lease = await register(this.store, this.member);
        break;
      } catch (error) {
        const kind = error instanceof TilewrightError ? error.code : error;
        if (!reported.has(kind)) this.events.failed(error);
        reported.add(kind);
        // Only a taken id is permanent; every other error of the store may be temporary.
        if (nodeIdTaken.is(error)) return;
        await sleep(RETRY_DELAY_MS, undefined, { ref: false });
      }
    }
    if (this.hasLeft) return this.lease.revoke();
    this.rejoinWhenLost();
    this.events.back();
  }
}

async function register(store: CoordinationStore, { id, ...fields }: Member): Promise<Lease> {
  let deadline = Infinity;
  const lease = await Lease.grant(store, LEASE_TTL_S);
  try {
    for (;;) {
      const key = PREFIX + id;
      const value = JSON.stringify(fields);
      const { set, current } = await compareAndSet(store, { key, value, revision: 0, lease: lease.id });
      if (set) return lease;
      // An outage of etcd does not count against the time limit.
      deadline = Math.min(deadline, performance.now() + OLD_LEASE_TIMEOUT_MS);
      if (performance.now() >= deadline) throw nodeIdTaken(id, decode(current!).url);
      await sleep(OLD_LEASE_POLL_MS);
    }
  } catch (error) {
    await lease.revoke();
    throw error;
  }
}

/** All members, ordered by id. A serializable read may be slightly stale, but works without a majority of the etcd servers. */
export async function listMembers(
  store: CoordinationStore,
  options: { serializable?: boolean } = {},
): Promise<Member[]> {
  return (await readMembers(store, options)).map(decode);
}

/** Calls `onChange` with the members at the start and whenever a node joins or leaves, or has registered again. */
export function watchMembers(
  store: CoordinationStore,
  onChange: (members: Member[]) => void,
  onError: (error: unknown) => void,
): Watch {
  let known: string | undefined;
  const read = async () => {
    const members = await readMembers(store);
    const registrations = members.map(({ createRevision }) => createRevision).join();
    if (registrations === known) return;
    known = registrations;
    onChange(members.map(decode));
  };
  return watchLoop(store, prefixRange(PREFIX), read, onError);
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
