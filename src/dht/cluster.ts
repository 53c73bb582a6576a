/** A node's part in a cluster: it joins, owns slots, follows the log, and sees to it that others' slots have living owners. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { GridName } from '../geocode/index.js';
import type { ObjectStore, Storage } from '../storage/index.js';
import {
  draining,
  joined,
  left,
  loaded,
  type NewNode,
  rebalanced,
  removed,
  type SlotBytes,
} from './assign.js';
import { writeCheckpoint } from './checkpoint.js';
import { claim, endClaimsOf, forgetDoneClaims, holderOf, isHolder } from './claims.js';
import { ClusterClaims } from './cluster-claims.js';
import { CommitLog } from './commit-log.js';
import type { CoordinationStore, Watch } from './coordination/store.js';
import {
  bytesUnknown,
  claimed,
  logRestored,
  otherFolder,
  otherFormat,
  singleFolder,
  unknownNode,
} from './errors.js';
import type { Histogram } from './histogram.js';
import { listMembers, type Member, type MembersChange, Membership, watchMembers } from './membership.js';
import { type Moves, movesBetween } from './moves.js';
import type { Peer, Peers } from './peers.js';
import { emptyPlacement, isTakenOver, type Placement, slotsOfNode } from './placement.js';
import { readPlacement, type StoredPlacement, swapPlacement, watchPlacement } from './placement-store.js';
import { formatPlacement, parsePlacement } from './placement-text.js';
import { Replica } from './replica.js';
import { readRestored } from './restore.js';
import { type PrefixLengths, slotOf } from './slots.js';
import { identityOf, requireWholeLog } from './store-identity.js';
import { type Survey, Surveyor } from './survey.js';
import { type SweepContext, type SweepReport, sweepStore } from './sweep.js';

/** Slots that are loaded together: commits wait meanwhile. */
const CHUNK = 1024;
/** Between two changes of the placement by one node, ms. */
const SWAP_INTERVAL = 1000;
/** How long a node is away before its slots get other owners, ms. */
const GRACE = 30_000;
/** How long an owner that has been relieved still answers, ms. */
const LINGER = 60_000;
/** A checkpoint is due after so many commits, or after so long where there are any, ms; it is looked for so often. */
const CHECKPOINT_COMMITS = 1000;
const CHECKPOINT_TIME = 10 * 60_000;
const CHECKPOINT_LOOK = 10_000;
/** The shared store is swept so often, ms, by one of the nodes. */
const SWEEP = 3_600_000;
/** Members act one after another, so that mostly one does. */
const TURN = 2000;
/** How long nodes are waited for that tell what they hold, where the placement hangs on it, and where somebody looks, ms. */
const SURVEY = 5000;
const GLANCE = 1000;

export interface ClusterOptions {
  /** This node, as it tells the others. */
  member: Member;
  storage: Storage;
  objects: ObjectStore;
  coordination: CoordinationStore;
  /** By which other nodes are asked how many bytes their slots have; without it, slots count by their number. */
  peers?: Peers;
  /** Owners of each slot, where the cluster is new. */
  owners: number;
  grace?: number;
  linger?: number;
  /** A checkpoint is written after so many commits. */
  checkpointAfter?: number;
  /** Is told of what goes wrong in the background; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/**
 * Invariants: this node answers for the slots that `replica` holds and for no others; it says that a slot is loaded only after it is. A
 * change of the placement is computed from the stored document and replaces exactly that one.
 */
export class Cluster {
  readonly log: CommitLog;
  private membership!: Membership;
  private members: Member[] = [];
  private readonly urls = new Map<string, string>();
  private current!: Placement;
  private readonly watches: Watch[] = [];
  /** When a node of the placement was first seen to be no member. */
  private readonly missing = new Map<string, number>();
  private readonly relieved = new Map<number, number>();
  private readonly closing = new AbortController();
  private tending: Promise<void> | undefined;
  private looking: NodeJS.Timeout | undefined;
  private sweepDue: NodeJS.Timeout | undefined;
  private sweeping: Promise<unknown> | undefined;
  private checkpointing: Promise<void> | undefined;
  /** The last checkpoint that was seen, and when. */
  private checkpoint = { seq: 0, seen: performance.now() };
  private again = false;
  private swapped = -Infinity;
  private readonly surveyor: Surveyor;
  claims!: ClusterClaims;

  private constructor(
    private readonly options: ClusterOptions,
    readonly id: string,
    readonly replica: Replica,
    log: CommitLog,
    readonly prefixLengths: PrefixLengths,
    /** Which restoration the log is of. */
    private readonly restored: string | undefined,
  ) {
    this.log = log;
    this.surveyor = new Surveyor(options.member.id, replica, options.peers);
  }

  /**
   * Joins the cluster of the tile store, or makes it. Throws TW_DHT_NODE_ID_TAKEN, TW_DHT_OTHER_CLUSTER, TW_DHT_OTHER_FOLDER,
   * TW_DHT_SINGLE_FOLDER, TW_DHT_LOG_BEHIND_STORE, TW_DHT_OTHER_FORMAT.
   */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const { storage, objects, coordination, member, onFailure } = options;
    const log = new CommitLog(coordination);
    const known = await storage.replica();
    if (!known && !(await isEmpty(storage))) throw singleFolder(storage.dir);
    const { id, prefixLengths } = await identityOf(objects, coordination, log);
    if (known && known.cluster !== id) throw otherFolder(storage.dir, known.cluster, id);
    await requireWholeLog(log, objects);
    requireFormat(member, await listMembers(coordination));
    const restored = await readRestored(coordination);
    const replica = await Replica.open({
      ...{ storage, objects, log, cluster: id, prefixLengths, onFailure },
      ...(restored !== undefined && { restored }),
    });
    const cluster = new Cluster(options, id, replica, log, prefixLengths, restored);
    cluster.membership = await Membership.join(coordination, member, {
      lost: () => onFailure(new Error(`node ${member.id} was cut off from etcd; it comes back by itself`)),
      back: () => void cluster.comeBack().catch(onFailure),
      failed: onFailure,
    });
    try {
      // No other process has this node's id: whoever claimed by it is dead.
      await endClaimsOf(coordination, isHolder(member.id));
      const holder = holderOf(member);
      const shared = { coordination, log, objects, replica, prefixLengths };
      cluster.claims = new ClusterClaims({ storage, holder, ...shared });
      storage.enterCluster(cluster.claims, objects, onFailure);
      await replica.catchUp();
      await cluster.changeByBytes((placement, bytes) =>
        // Whoever drains it has not said that it shall stay.
        isDraining(placement, member.id) ? placement : joined(placement, nodeOf(member), bytes),
      );
      cluster.start();
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  get placement(): Placement {
    return this.current;
  }

  /** The nodes that run now, this one among them. */
  get nodes(): readonly Member[] {
    return this.members;
  }

  /** Where a node was seen last: one that etcd takes for dead may still answer. */
  peer(id: string): Peer | undefined {
    const url = this.urls.get(id);
    return url === undefined ? undefined : { id, url };
  }

  get self(): string {
    return this.options.member.id;
  }

  /** Whether all slots that others may ask this node for are here. */
  get isReady(): boolean {
    return slotsOfNode(this.current, this.self, 'available').every((slot) => this.replica.holds(slot));
  }

  /** Whether the tiles of a cell are here. */
  holds({ grid, geocode }: { grid: GridName; geocode: string }): boolean {
    return this.replica.holds(slotOf(grid, geocode, this.prefixLengths[grid]));
  }

  /** How long the commits of this node take. */
  get commitTimes(): Histogram {
    return this.claims.commitTimes;
  }

  /** A node gives its slots to others and gets none. Throws TW_DHT_UNKNOWN_NODE, TW_DHT_LAST_NODE. */
  async drain(node: string): Promise<void> {
    await this.changeByBytes((placement, bytes) => draining(placement, node, bytes));
  }

  /** A node that drains takes slots again. Throws TW_DHT_UNKNOWN_NODE. */
  async rejoin(node: string): Promise<void> {
    await this.changeByBytes((placement, bytes) => {
      const known = placement.nodes.find(({ id }) => id === node);
      if (!known) throw unknownNode(node);
      const { id, zone, weight } = known;
      return joined(placement, { id, zone, weight }, bytes);
    });
  }

  /**
   * Spreads the slots anew by the bytes that they hold; with `dryRun` it tells only what that would move. Throws
   * TW_DHT_BYTES_UNKNOWN where no node tells of some slots.
   */
  async rebalance({ dryRun = false } = {}): Promise<Moves> {
    const { bytes, unmeasured } = await this.survey(SURVEY);
    if (unmeasured > 0) throw bytesUnknown(unmeasured);
    let moves = movesBetween(this.current, rebalanced(this.current, bytes), bytes);
    if (!dryRun)
      await this.change((placement) => {
        const after = rebalanced(placement, bytes);
        moves = movesBetween(placement, after, bytes);
        return after;
      });
    return moves;
  }

  /** What the nodes hold, and how far each has followed the log. */
  async survey(patience = GLANCE): Promise<Survey> {
    const known = this.members.length > 0;
    const members = known ? this.members : await listMembers(this.options.coordination);
    return this.surveyor.survey(members, patience);
  }

  /** No member any more; what this node owns stays its own for the grace period. */
  async close(): Promise<void> {
    this.closing.abort();
    for (const watch of this.watches) watch.close();
    clearTimeout(this.looking);
    clearTimeout(this.sweepDue);
    await this.tending;
    await this.checkpointing;
    await this.sweeping;
    await this.membership.leave();
    await this.replica.close();
  }

  private start(): void {
    const { coordination, onFailure } = this.options;
    this.replica.start();
    // What others ask for later is counted now.
    this.replica.bytesBySlot().catch((error) => {
      if (!this.closing.signal.aborted) onFailure(error);
    });
    this.lookForCheckpoint();
    this.lookForSweep();
    this.watches.push(
      watchPlacement(coordination, (stored) => this.see(stored), onFailure),
      watchMembers(coordination, (change) => this.meet(change), onFailure),
    );
  }

  /** Looks whether a checkpoint is due, again and again. */
  private lookForCheckpoint(): void {
    this.looking = setTimeout(
      () => {
        this.checkpointing = this.keepCheckpoint()
          .catch((error) => this.options.onFailure(error))
          .finally(() => {
            if (!this.closing.signal.aborted) this.lookForCheckpoint();
          });
      },
      this.options.checkpointAfter === undefined ? CHECKPOINT_LOOK : POLL,
    ).unref();
  }

  /** Writes a checkpoint where one is due and no other node is at it. */
  private async keepCheckpoint(): Promise<void> {
    const { objects, coordination, checkpointAfter = CHECKPOINT_COMMITS } = this.options;
    const seq = (await this.log.readCheckpoint())?.seq ?? 0;
    const now = performance.now();
    if (seq !== this.checkpoint.seq) this.checkpoint = { seq, seen: now };
    const commits = this.replica.applied - seq;
    const isOld = commits > 0 && now - this.checkpoint.seen >= CHECKPOINT_TIME;
    if (commits < checkpointAfter && !isOld) return;
    await this.alone('checkpoint', async () => {
      const { log, prefixLengths } = this;
      await forgetDoneClaims(coordination, await writeCheckpoint({ log, objects, prefixLengths }));
    });
  }

  private lookForSweep(): void {
    this.sweepDue = setTimeout(() => {
      this.sweeping = this.sweep()
        .catch((error) => {
          if (!this.closing.signal.aborted) this.options.onFailure(error);
        })
        .finally(() => {
          if (!this.closing.signal.aborted) this.lookForSweep();
        });
    }, SWEEP).unref();
  }

  /** Removes what is not needed of the shared store, unless another node is at it or has been of late. */
  sweep(options: Pick<SweepContext, 'keep' | 'every'> = {}): Promise<SweepReport | undefined> {
    const { id: cluster, log, prefixLengths } = this;
    const { objects, coordination } = this.options;
    return this.alone('sweep', (lost) => {
      const signal = AbortSignal.any([lost, this.closing.signal]);
      return sweepStore({ cluster, coordination, log, objects, prefixLengths, signal, ...options });
    });
  }

  /** Does what one node at a time does; undefined where another one is at it. */
  private async alone<T>(name: string, work: (lost: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const held = await claim(this.options.coordination, name, this.self).catch((error) => {
      if (claimed.is(error)) return undefined;
      throw error;
    });
    if (!held) return undefined;
    try {
      return await work(held.lost);
    } finally {
      await held.release();
    }
  }

  /** After it was cut off from etcd. */
  private async comeBack(): Promise<void> {
    if ((await readRestored(this.options.coordination)) !== this.restored) {
      await this.membership.leave();
      throw logRestored(this.self);
    }
    this.tend();
  }

  private see({ text }: StoredPlacement): void {
    const placement = parsePlacement(text);
    if (this.current && placement.version <= this.current.version) return;
    this.current = placement;
    this.tend();
  }

  private meet({ members }: MembersChange): void {
    this.members = members;
    for (const { id, url } of members) this.urls.set(id, url);
    this.tend();
  }

  /** Does what is due, now and later. Nothing is before the placement is known, though a lease may be lost and won by then. */
  private tend(): void {
    if (!this.current) return;
    this.again = true;
    this.tending ??= this.tendUntilDone().finally(() => {
      this.tending = undefined;
    });
  }

  private async tendUntilDone(): Promise<void> {
    const { signal } = this.closing;
    while (this.again && !signal.aborted) {
      this.again = false;
      try {
        await this.beThere();
        await this.loadOwn();
        const later = Math.min(await this.replaceMissing(), await this.letGo());
        if (later === Infinity || this.again) continue;
        // Something is due then, or sooner if something changes meanwhile.
        for (let waited = 0; waited < later && !this.again; waited += POLL)
          await sleep(POLL, undefined, { signal });
        this.again = true;
      } catch (error) {
        if (signal.aborted) return;
        this.options.onFailure(error);
        // It only rejects at the end, which the loop sees.
        await sleep(SWAP_INTERVAL, undefined, { signal }).catch(() => undefined);
        this.again = true;
      }
    }
  }

  /** Joins again where others have given this node's slots away, because it was cut off for too long. */
  private async beThere(): Promise<void> {
    const { member } = this.options;
    const isAmong = (nodes: readonly { id: string }[]) => nodes.some(({ id }) => id === member.id);
    if (isAmong(this.current.nodes) || !isAmong(this.members)) return;
    await this.changeByBytes((placement, bytes) =>
      isAmong(placement.nodes) ? placement : joined(placement, nodeOf(member), bytes),
    );
  }

  /** Loads what this node is to answer for, and says so. */
  private async loadOwn(): Promise<void> {
    const { self, replica } = this;
    const lost = slotsOfNode(this.current, self, 'available').filter((slot) => !replica.holds(slot));
    for (let at = 0; at < lost.length; at += CHUNK) await replica.take(lost.slice(at, at + CHUNK));
    for (;;) {
      const slots = slotsOfNode(this.current, self, 'initializing');
      if (slots.length === 0) return;
      const lacking = slots.filter((slot) => !replica.holds(slot));
      // What is loaded is told as often as the placement may change.
      for (let at = 0; at < lacking.length; at += CHUNK) {
        this.closing.signal.throwIfAborted();
        await replica.take(lacking.slice(at, at + CHUNK));
        if (this.mayChange) break;
      }
      await this.change((placement) =>
        loaded(
          placement,
          self,
          slots.filter((slot) => replica.holds(slot)),
        ),
      );
    }
  }

  /** Gives slots of nodes that are away for too long to others. Resolves to when to look again, ms. */
  private async replaceMissing(): Promise<number> {
    const { grace = GRACE } = this.options;
    const present = new Set(this.members.map(({ id }) => id));
    if (!present.has(this.self)) return Infinity;
    const rank = this.members.findIndex(({ id }) => id === this.self);
    const absent = this.current.nodes.filter(({ id }) => !present.has(id)).map(({ id }) => id);
    for (const id of this.missing.keys()) if (!absent.includes(id)) this.missing.delete(id);
    let next = Infinity;
    for (const id of absent) {
      const since = this.missing.get(id) ?? performance.now();
      this.missing.set(id, since);
      const due = since + grace + rank * TURN - performance.now();
      if (due > 0) next = Math.min(next, due);
      else await this.changeByBytes((placement, bytes) => removed(placement, id, bytes));
    }
    return next;
  }

  /** Drops slots that this node no longer owns, a while after others have taken them over. Resolves to when to look again, ms. */
  private async letGo(): Promise<number> {
    const { self, replica } = this;
    const { linger = LINGER } = this.options;
    const { slots: ownersOf } = this.current;
    const leaving = slotsOfNode(this.current, self, 'leaving').filter((slot) => isTakenOver(ownersOf[slot]!));
    if (leaving.length > 0) await this.change((placement) => left(placement, self, leaving));
    const now = performance.now();
    const foreign = new Set(
      replica.slots.filter((slot) => !this.current.slots[slot]!.some(({ node }) => node === self)),
    );
    for (const slot of this.relieved.keys()) if (!foreign.has(slot)) this.relieved.delete(slot);
    for (const slot of foreign) if (!this.relieved.has(slot)) this.relieved.set(slot, now);
    const due = [...foreign].filter((slot) => this.relieved.get(slot)! + linger <= now);
    if (due.length > 0) await replica.drop(due);
    return foreign.size > due.length ? linger : Infinity;
  }

  private get mayChange(): boolean {
    return performance.now() - this.swapped >= SWAP_INTERVAL;
  }

  /** A change of the stored placement that hangs on the bytes of slots; nodes are asked only where something changes. */
  private async changeByBytes(to: (placement: Placement, bytes?: SlotBytes) => Placement): Promise<void> {
    const stored = await readPlacement(this.options.coordination);
    const before = stored && parsePlacement(stored.text);
    const isSame = before !== undefined && to(before) === before;
    const bytes = isSame || !stored ? undefined : (await this.survey(SURVEY)).bytes;
    await this.change((placement) => to(placement, bytes));
  }

  /** Changes the stored placement, at most once a second. */
  private async change(to: (placement: Placement) => Placement): Promise<void> {
    const { coordination, owners } = this.options;
    const wait = this.swapped + SWAP_INTERVAL - performance.now();
    if (wait > 0) await sleep(wait, undefined, { signal: this.closing.signal });
    let stored = await readPlacement(coordination);
    for (;;) {
      const before = stored ? parsePlacement(stored.text) : emptyPlacement(this.prefixLengths, owners);
      const after = to(before);
      if (after === before && stored) {
        this.see(stored);
        return;
      }
      const text = formatPlacement(after);
      const { swapped, current } = await swapPlacement(coordination, stored?.revision ?? 0, text);
      if (swapped) {
        this.swapped = performance.now();
        this.see(current!);
        return;
      }
      stored = current;
    }
  }
}

const POLL = 100;

/** Whether a folder holds nothing that would not be in the store. */
async function isEmpty({ catalogue: { collections, models }, index }: Storage): Promise<boolean> {
  for (const table of [collections, models]) for await (const _ of table.keys({ limit: 1 })) return false;
  return index.size === 0;
}

/** A node of another version may misread what this one writes. */
function requireFormat({ id, format }: Member, members: Member[]): void {
  const other = members.find((member) => member.id !== id && member.format !== format);
  if (other) throw otherFormat(other.id, other.software, other.format, format);
}

const isDraining = ({ nodes }: Placement, node: string) =>
  nodes.some(({ id, draining }) => id === node && draining);

const nodeOf = ({ id, zone, weight }: Member): NewNode => ({ id, zone, weight });
