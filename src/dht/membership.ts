/** The running nodes of a cluster: their registration, their heartbeats in the tile store, and the sizes of the slots that they report. */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PeriodicTask, toArray } from '../async/index.js';
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
} from '../coordination/index.js';
import { TilewrightError } from '../errors.js';
import type { ObjectStore } from '../storage/index.js';
import { COUNT, listOf, messageCheck, objectOf, TEXT, tupleOf } from '../utils/json-schema.js';
import { nodeIdTaken, nodesStillRunning } from './errors.js';
import type { PeerClient } from './peers.js';
import { SLOTS, SlotSet } from './slots.js';

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

const MEMBER_PREFIX = 'members/';
const MEMBER_FIELDS: (keyof Member)[] = ['url', 'zone', 'weight', 'software', 'format'];
/** Lifetime of a member's lease. A node that dies or loses its connection stops being a member after this time. */
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
    return new Membership(store, member, events, await registerMember(store, member));
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
        this.lease = await registerMember(this.store, this.member);
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

async function registerMember(store: CoordinationStore, { id, ...fields }: Member): Promise<Lease> {
  let deadline = Infinity;
  const lease = await Lease.grant(store, LEASE_TTL_S);
  try {
    for (;;) {
      const key = MEMBER_PREFIX + id;
      const value = JSON.stringify(fields);
      const { set, current } = await compareAndSet(store, { key, value, revision: 0, lease: lease.id });
      if (set) return lease;
      // An outage of etcd does not count against the time limit.
      deadline = Math.min(deadline, performance.now() + OLD_LEASE_TIMEOUT_MS);
      if (performance.now() >= deadline) throw nodeIdTaken(id, decodeMember(current!).url);
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
  return (await readMembers(store, options)).map(decodeMember);
}

/** Calls `onChange` with the members at the start and whenever a node joins or leaves, or has registered again. */
export function watchMembers(
  store: CoordinationStore,
  onChange: (members: Member[]) => void,
  onError: (error: unknown) => void,
): Watch {
  let lastRegistrations: string | undefined;
  const read = async () => {
    const members = await readMembers(store);
    const registrations = members.map(({ createRevision }) => createRevision).join();
    if (registrations === lastRegistrations) return;
    lastRegistrations = registrations;
    onChange(members.map(decodeMember));
  };
  return watchLoop(store, prefixRange(MEMBER_PREFIX), read, onError);
}

async function readMembers(
  store: CoordinationStore,
  options: { serializable?: boolean } = {},
): Promise<KeyValue[]> {
  return (await store.read([prefixRange(MEMBER_PREFIX)], options)).gets[0]!.kvs;
}

function decodeMember(kv: StoredValue): Member {
  return { ...parseJsonValue<Member>(kv, MEMBER_FIELDS), id: kv.key.slice(MEMBER_PREFIX.length) };
}

/**
 * Records when each node was first seen missing. After a grace period the others take over, staggered by rank so that usually only one
 * acts.
 */
export class FailureDetector {
  private readonly missingSince = new Map<string, number>();

  /** `gracePeriodMs`: how long a node may be missing. `rankDelayMs`: the additional wait for each rank. */
  constructor(
    private readonly gracePeriodMs: number,
    private readonly rankDelayMs: number,
  ) {}

  /** Sets the nodes that are missing now; all others are forgotten. */
  update(absent: ReadonlySet<string>): void {
    for (const node of this.missingSince.keys()) if (!absent.has(node)) this.missingSince.delete(node);
    for (const node of absent)
      if (!this.missingSince.has(node)) this.missingSince.set(node, performance.now());
  }

  /** Milliseconds until a node with this rank must act for the missing `node`; 0 or less means now. */
  msUntilTakeover(node: string, rank: number): number {
    return this.missingSince.get(node)! + this.gracePeriodMs + rank * this.rankDelayMs - performance.now();
  }
}

const HEARTBEATS_FOLDER = 'running/';
const HEARTBEAT_INTERVAL_MS = 20_000;
const DEAD_AFTER_MS = 3 * HEARTBEAT_INTERVAL_MS;
const HEARTBEAT_POLL_MS = 1000;
/** A node that stops waits no longer for its object store. */
const CLOSE_TIMEOUT_MS = 2000;

/**
 * Every node writes heartbeats to the tile store, so that `node restore` notices running nodes even if it was given the wrong etcd.
 *
 * Invariant: a running node has an object `running/<node>/<id>`, whose id changes every HEARTBEAT_INTERVAL_MS; a node that was stopped has
 * none. No clocks are compared: a new name within DEAD_AFTER_MS proves that a node is running.
 */
export class Heartbeat {
  /** Objects of this node that may exist in the store. */
  private objectNames: string[] = [];
  private task: PeriodicTask | undefined;

  private constructor(
    private readonly objects: ObjectStore,
    private readonly node: string,
  ) {}

  /** Resolves after the first heartbeat; if that fails, no more follow. Removes the heartbeats of earlier processes of the node. */
  static async start(
    objects: ObjectStore,
    node: string,
    onFailure: (error: unknown) => void,
  ): Promise<Heartbeat> {
    const heartbeat = new Heartbeat(objects, node);
    heartbeat.objectNames = await listHeartbeats(objects, node);
    await heartbeat.beat();
    heartbeat.task = new PeriodicTask(() => heartbeat.beat(), HEARTBEAT_INTERVAL_MS, onFailure);
    return heartbeat;
  }

  private async beat(): Promise<void> {
    const name = `${HEARTBEATS_FOLDER}${this.node}/${randomUUID()}`;
    const former = this.objectNames;
    // The name is recorded before the object is written: if a step fails, the next heartbeat removes it.
    this.objectNames = [...former, name];
    await this.objects.put(name, Buffer.alloc(0));
    await this.objects.delete(former);
    this.objectNames = [name];
  }

  async close(): Promise<void> {
    await this.task?.close();
    await this.objects.delete(this.objectNames, { signal: AbortSignal.timeout(CLOSE_TIMEOUT_MS) });
  }
}

/**
 * Throws TW_DHT_STILL_RUNNING if a node is running. A killed node leaves its last heartbeat behind: `onWait` gets the ids of these nodes,
 * and if none writes a new heartbeat within `timeoutMs`, their objects are removed.
 */
export async function requireNoHeartbeats(
  objects: ObjectStore,
  timeoutMs = DEAD_AFTER_MS,
  onWait: (nodes: string[], timeoutMs: number) => void = () => {},
): Promise<void> {
  const before = await listHeartbeats(objects);
  if (before.length === 0) return;
  onWait(nodesOf(before), timeoutMs);
  for (const startedAt = performance.now(); performance.now() - startedAt < timeoutMs; ) {
    await sleep(Math.min(HEARTBEAT_POLL_MS, timeoutMs));
    const fresh = (await listHeartbeats(objects)).filter((name) => !before.includes(name));
    if (fresh.length > 0) throw nodesStillRunning(nodesOf(fresh).join(', '));
  }
  await objects.delete(before);
}

async function listHeartbeats(objects: ObjectStore, node?: string): Promise<string[]> {
  const objectInfos = await toArray(
    objects.list(node === undefined ? HEARTBEATS_FOLDER : `${HEARTBEATS_FOLDER}${node}/`),
  );
  return objectInfos.map(({ name }) => name);
}

const nodesOf = (names: string[]) => [...new Set(names.map((name) => name.split('/')[1]!))];

export const STATS_PATH = '/cluster/internal/survey';

/** The report of one node. */
interface NodeStats {
  /** The last commit that the node has applied. */
  applied: number;
  /** The slots that it holds, as text of a `SlotSet`. */
  slots: string;
  /** The sizes of its slots that contain tiles. */
  bytes: [slot: number, bytes: number][];
}

const SLOT_SCHEMA = { type: 'integer', minimum: 0, maximum: SLOTS - 1 };
const checkNodeStats = messageCheck(
  objectOf({ applied: COUNT, slots: TEXT, bytes: listOf(tupleOf(SLOT_SCHEMA, COUNT)) }),
);

/** The part of a replica that is reported. */
interface StatsSource {
  readonly applied: number;
  readonly slots: number[];
  bytesBySlot(): Promise<ArrayLike<number>>;
}

/** The report of this node. */
export async function nodeStats(replica: StatsSource): Promise<NodeStats> {
  const bytes = await replica.bytesBySlot();
  const { slots, applied } = replica;
  const measured = slots.flatMap((slot): NodeStats['bytes'] =>
    bytes[slot]! > 0 ? [[slot, bytes[slot]!]] : [],
  );
  return { applied, slots: new SlotSet(slots).toText(), bytes: measured };
}

export interface ClusterStats {
  /** The last commit that each node has applied, for all nodes that answered. */
  applied: ReadonlyMap<string, number>;
  /** Bytes by slot; 0 for slots that no node has reported so far. */
  bytes: ArrayLike<number>;
  /** Number of slots that no node has reported so far. */
  unmeasured: number;
}

/** Collects the reports of all nodes. For slots that no node reports now, the last report counts. */
export class StatsCollector {
  private readonly bytes = new Float64Array(SLOTS);
  private readonly measured = new SlotSet();

  constructor(
    private readonly self: string,
    private readonly replica: StatsSource,
    /** Without it, only this node is asked. */
    private readonly peers: PeerClient | undefined,
  ) {}

  /** Asks all `members`. A node is ignored if it does not send a valid `NodeStats` within `timeoutMs`. */
  async collect(members: readonly Member[], timeoutMs: number): Promise<ClusterStats> {
    const answers = await Promise.allSettled(members.map((member) => this.statsOf(member, timeoutMs)));
    const reports = answers.flatMap((answer, i) =>
      answer.status === 'fulfilled' ? [{ node: members[i]!.id, ...answer.value }] : [],
    );
    // If two nodes report the same slot, the one that has applied more commits counts.
    for (const { slots, bytes } of reports.toSorted((a, b) => a.applied - b.applied)) {
      for (const slot of slots) {
        this.bytes[slot] = 0;
        this.measured.add(slot);
      }
      for (const [slot, count] of bytes) this.bytes[slot] = count;
    }
    return {
      applied: new Map(reports.map(({ node, applied }) => [node, applied])),
      bytes: this.bytes.slice(),
      unmeasured: SLOTS - this.measured.size,
    };
  }

  private async statsOf(
    member: Member,
    timeoutMs: number,
  ): Promise<Omit<NodeStats, 'slots'> & { slots: SlotSet }> {
    const stats = await (member.id === this.self
      ? nodeStats(this.replica)
      : this.requestStats(member, timeoutMs));
    return { ...stats, slots: SlotSet.fromText(stats.slots) };
  }

  private requestStats(member: Member, timeoutMs: number): Promise<NodeStats> {
    if (!this.peers) throw new Error(`without a peer client, node ${member.id} cannot be asked`);
    return this.peers.call(member, STATS_PATH, {}, timeoutMs, checkNodeStats);
  }
}
