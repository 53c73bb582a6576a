/** A node's part in a cluster: it joins, and says who owns what, who runs, and what they hold. */

import type { CoordinationStore, Watch } from '../coordination/index.js';
import type { GridName } from '../grid/index.js';
import type { Histogram } from '../metrics/index.js';
import type { ObjectStore, Storage } from '../storage/index.js';
import { ClusterClaims } from './commit/cluster-lock-manager.js';
import { CommitLog } from './commit/commit-log.js';
import { endClaimsOf, holderOf, isHolder } from './commit/fenced-lock.js';
import { bytesUnknown, logRestored, otherFolder, otherFormat, singleFolder, unknownNode } from './errors.js';
import { type Survey, Surveyor } from './membership/cluster-stats.js';
import { SignOfLife } from './membership/heartbeat.js';
import {
  listMembers,
  type Member,
  type MembersChange,
  Membership,
  watchMembers,
} from './membership/membership.js';
import { emptyPlacement, type OwnerState, type Placement, slotsOfNode } from './placement/placement.js';
import { draining, joined, rebalanced } from './placement/placement-changes.js';
import { type Moves, movesBetween } from './placement/placement-diff.js';
import { SharedPlacement } from './placement/placement-manager.js';
import { watchPlacement } from './placement/placement-store.js';
import { type PrefixLengths, SLOTS, slotOfCell } from './placement/slots.js';
import { identityOf, requireWholeLog } from './recovery/cluster-identity.js';
import { epochOf, readRestored } from './recovery/restore-epoch.js';
import { Upkeep } from './replication/maintenance.js';
import type { SweepContext, SweepReport } from './replication/object-gc.js';
import { Replica } from './replication/replica.js';
import { Reconciler } from './replication/slot-reconciler.js';
import type { Peer, Peers } from './rpc/peer-client.js';

/** How long nodes are waited for that tell what they hold, where the placement hangs on it, and where somebody looks, ms. */
const SURVEY = 5000;
const GLANCE = 1000;

export interface ClusterOptions {
  /** This node, as it tells the others. */
  member: Member;
  storage: Storage;
  objects: ObjectStore;
  coordination: CoordinationStore;
  /** Which coordination store it is, for the messages of nodes of another one. */
  words?: string;
  /** By which other nodes are asked how many bytes their slots have; without it, slots count by their number. */
  peers?: Peers;
  /** Owners of each slot, where the cluster is new. */
  owners: number;
  grace?: number;
  linger?: number;
  /** A checkpoint is written after so many commits. */
  checkpointAfter?: number;
  /** Breaks off `join`. It has no effect later. */
  signal?: AbortSignal;
  /** Is told what happens, in words for an operator. */
  onNews?: ((text: string) => void) | undefined;
  /** Is told of what goes wrong in the background; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/** Invariant: this node answers for the slots that `replica` holds and for no others. */
export class Cluster {
  private membership!: Membership;
  private signOfLife!: SignOfLife;
  claims!: ClusterClaims;
  private members: Member[] = [];
  private toldSlots = '';
  private readonly urls = new Map<string, string>();
  private readonly watches: Watch[] = [];
  private readonly closing = new AbortController();
  private readonly surveyor: Surveyor;
  private readonly shared: SharedPlacement;
  private readonly reconciler: Reconciler;
  private readonly upkeep: Upkeep;

  private constructor(
    private readonly options: ClusterOptions,
    readonly id: string,
    readonly replica: Replica,
    readonly log: CommitLog,
    readonly prefixLengths: PrefixLengths,
    /** Which restoration the log is of. */
    private readonly restored: string | undefined,
  ) {
    const { member, coordination, objects, peers, owners, grace, linger, checkpointAfter, onFailure } =
      options;
    const { signal } = this.closing;
    this.surveyor = new Surveyor(member.id, replica, peers);
    this.shared = new SharedPlacement({
      coordination,
      empty: emptyPlacement(prefixLengths, owners),
      bytes: async () => (await this.survey(SURVEY)).bytes,
      onChange: () => {
        this.reconciler.look();
        this.tellSlots();
      },
      signal,
    });
    const placement = this.shared;
    this.reconciler = new Reconciler({ member, replica, placement, grace, linger, signal, onFailure });
    this.upkeep = new Upkeep({
      ...{ self: member.id, cluster: id, coordination, log, objects, prefixLengths, replica },
      ...{ checkpointAfter, signal, onFailure },
    });
  }

  /**
   * Joins the cluster of the tile store, or makes it. Throws TW_DHT_NODE_ID_TAKEN, TW_DHT_OTHER_CLUSTER, TW_DHT_OTHER_COORDINATION,
   * TW_DHT_STORE_NOT_EMPTY, TW_DHT_OTHER_FOLDER, TW_DHT_SINGLE_FOLDER, TW_DHT_LOG_BEHIND_STORE, TW_DHT_OTHER_FORMAT, and the reason of
   * `signal`.
   */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const { storage, objects, coordination, member, signal, onFailure } = options;
    const log = new CommitLog(coordination, options.checkpointAfter);
    const known = await storage.replica();
    if (!known && !(await isEmpty(storage))) throw singleFolder(storage.dir);
    const { id, prefixLengths } = await identityOf(objects, coordination, log, options.words);
    if (known && known.cluster !== id) throw otherFolder(storage.dir, known.cluster, id);
    await requireWholeLog(log, objects);
    requireFormat(member, await listMembers(coordination));
    const restoration = await readRestored(coordination);
    const restored = restoration?.id;
    const epoch = await epochOf(restoration, objects);
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
    cluster.signOfLife = await SignOfLife.start(objects, member.id, onFailure).catch(async (error) => {
      await cluster.membership.leave();
      throw error;
    });
    try {
      // No other process has this node's id: whoever claimed by it is dead.
      await endClaimsOf(coordination, isHolder(member.id));
      const holder = holderOf(member);
      const shared = { coordination, log, objects, replica, prefixLengths };
      cluster.claims = new ClusterClaims({ storage, holder, ...shared, epoch });
      storage.enterCluster(cluster.claims, objects, onFailure);
      await replica.catchUp();
      // A node that is about to stop must not receive slots.
      signal?.throwIfAborted();
      await cluster.shared.changeByBytes((placement, bytes) =>
        // Whoever drains it has not said that it shall stay.
        isDraining(placement, member.id) ? placement : joined(placement, member, bytes),
      );
      cluster.start();
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  get placement(): Placement {
    return this.shared.current!;
  }

  /** The nodes that run now, this one among them. */
  get nodes(): readonly Member[] {
    return this.members;
  }

  /** Since when etcd has not answered this node, ms since 1970: placement and nodes are as of then. Undefined where it does. */
  get silentSince(): number | undefined {
    return this.membership.silentSince;
  }

  /** Where a node was seen last: one that etcd takes for dead may still answer. */
  peer(id: string): Peer | undefined {
    const url = this.urls.get(id);
    return url === undefined ? undefined : { id, url };
  }

  get self(): string {
    return this.options.member.id;
  }

  /**
   * True if this node can apply commits and has loaded its available slots, and also those of its initializing slots that no other node
   * has, as after a restoration.
   */
  get isReady(): boolean {
    if (this.options.storage.writeFailure !== undefined) return false;
    return this.placement.slots.every((owners, slot) => {
      const state = owners.find(({ node }) => node === this.self)?.state;
      const isElsewhere = owners.some((owner) => owner.state !== 'initializing');
      const isNeeded = state === 'available' || (state === 'initializing' && !isElsewhere);
      return !isNeeded || this.replica.holds(slot);
    });
  }

  /** Whether the tiles of a cell are here. */
  holds(cell: { grid: GridName; geocode: string }): boolean {
    return this.replica.holds(slotOfCell(cell, this.prefixLengths));
  }

  /** How many slots this node owns, in whatever state. */
  get owned(): number {
    return this.placement.slots.filter((owners) => owners.some(({ node }) => node === this.self)).length;
  }

  /** How long the commits of this node take. */
  get commitTimes(): Histogram {
    return this.claims.commitTimes;
  }

  /** Ends the claims of a node that is lost: what it was writing can be written by others at once, and by it no more. */
  async endClaimsOf(node: string): Promise<void> {
    await endClaimsOf(this.options.coordination, isHolder(node));
  }

  /** A node gives its slots to others and gets none. Throws TW_DHT_UNKNOWN_NODE, TW_DHT_LAST_NODE. */
  async drain(node: string): Promise<void> {
    await this.shared.changeByBytes((placement, bytes) => draining(placement, node, bytes));
  }

  /** A node that drains takes slots again. Throws TW_DHT_UNKNOWN_NODE. */
  async rejoin(node: string): Promise<void> {
    await this.shared.changeByBytes((placement, bytes) => {
      const known = placement.nodes.find(({ id }) => id === node);
      if (!known) throw unknownNode(node);
      return joined(placement, known, bytes);
    });
  }

  /**
   * Spreads the slots anew by the bytes that they hold; with `dryRun` it tells only what that would move. Throws
   * TW_DHT_BYTES_UNKNOWN where no node tells of some slots.
   */
  async rebalance({ dryRun = false } = {}): Promise<Moves> {
    const { bytes, unmeasured } = await this.survey(SURVEY);
    if (unmeasured > 0) throw bytesUnknown(unmeasured);
    let moves = movesBetween(this.placement, rebalanced(this.placement, bytes), bytes);
    if (!dryRun)
      await this.shared.change((placement) => {
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

  /** Removes what is not needed of the shared store, unless another node is at it or has been of late. */
  sweep(options: Pick<SweepContext, 'keep' | 'every'> = {}): Promise<SweepReport | undefined> {
    return this.upkeep.sweep(options);
  }

  /** No member any more; what this node owns stays its own for the grace period. */
  async close(): Promise<void> {
    this.closing.abort();
    for (const watch of this.watches) watch.close();
    await this.reconciler.ended();
    await this.upkeep.close();
    await this.membership.leave();
    // A store that is away keeps no node from stopping; who restores the cluster waits a while longer then.
    await this.signOfLife.close().catch(this.options.onFailure);
    await this.replica.close();
  }

  private start(): void {
    const { coordination, onFailure } = this.options;
    this.replica.start();
    this.upkeep.start();
    this.watches.push(
      watchPlacement(coordination, (stored) => this.shared.see(stored), onFailure),
      watchMembers(coordination, (change) => this.meet(change), onFailure),
    );
  }

  /** After it was cut off from etcd. */
  private async comeBack(): Promise<void> {
    if ((await readRestored(this.options.coordination))?.id !== this.restored) {
      await this.membership.leave();
      throw logRestored(this.self);
    }
    this.reconciler.look();
  }

  private meet({ members }: MembersChange): void {
    const { onNews = () => {} } = this.options;
    const left = this.members.filter(({ id }) => !members.some((member) => member.id === id));
    const came = members.filter(({ id }) => !this.members.some((member) => member.id === id));
    for (const { id, url } of left) onNews(`node ${id} at ${url} is away`);
    for (const { id, url } of came) onNews(`node ${id} at ${url} is here`);
    this.members = members;
    for (const { id, url } of members) this.urls.set(id, url);
    this.reconciler.meet(members);
  }

  /** Says how many slots the node owns, where that has changed. */
  private tellSlots(): void {
    const count = (state: OwnerState) => slotsOfNode(this.placement, this.self, state).length;
    const loading = count('initializing');
    const owned = loading + count('available') + count('leaving');
    const isDrained = owned === 0 && isDraining(this.placement, this.self);
    const text = isDrained
      ? `drained: this node owns no slots, and may be stopped`
      : `this node owns ${owned} of ${SLOTS} slots${loading > 0 ? `, and loads ${loading} of them` : ''}`;
    if (text !== this.toldSlots) this.options.onNews?.(text);
    this.toldSlots = text;
  }
}

/** Whether a folder holds nothing that would not be in the store. */
async function isEmpty({ catalogue: { collections, models }, index }: Storage): Promise<boolean> {
  return index.size === 0 && (await collections.isEmpty()) && (await models.isEmpty());
}

/** A node of another version may misread what this one writes. */
function requireFormat({ id, format }: Member, members: Member[]): void {
  const other = members.find((member) => member.id !== id && member.format !== format);
  if (other) throw otherFormat(other.id, other.software, other.format, format);
}

const isDraining = ({ nodes }: Placement, node: string) =>
  nodes.some(({ id, draining }) => id === node && draining);
