/** A node's part in a cluster: it joins, and says who owns what, who runs, and what they hold. */

import type { CoordinationStore, Watch } from '../coordination/index.js';
import type { GridName } from '../grid/index.js';
import type { ClusterMetrics } from '../metrics/index.js';
import type { ObjectStore, Storage } from '../storage/index.js';
import { ClusterLockManager } from './commit/cluster-lock-manager.js';
import { CommitLog } from './commit/commit-log.js';
import { isOwnedBy, ownerLabel, revokeLocksOf } from './commit/fenced-lock.js';
import {
  epochChanged,
  otherFolder,
  otherFormat,
  singleFolder,
  slotSizesUnknown,
  unknownNode,
} from './errors.js';
import { type ClusterStats, StatsCollector } from './membership/cluster-stats.js';
import { Heartbeat } from './membership/heartbeat.js';
import {
  listMembers,
  type Member,
  type MembersChange,
  Membership,
  watchMembers,
} from './membership/membership.js';
import { emptyPlacement, type OwnerState, type Placement, slotsOfNode } from './placement/placement.js';
import { addNode, drainNode, rebalance } from './placement/placement-changes.js';
import { diffPlacements, type PlacementDiff } from './placement/placement-diff.js';
import { PlacementManager } from './placement/placement-manager.js';
import { watchPlacement } from './placement/placement-store.js';
import { type PrefixLengths, SLOTS, slotOfCell } from './placement/slots.js';
import { openClusterIdentity, requireLogCoversStore } from './recovery/cluster-identity.js';
import { epochNumber, readEpoch } from './recovery/restore-epoch.js';
import { Maintenance } from './replication/maintenance.js';
import type { ObjectGcContext, ObjectGcReport } from './replication/object-gc.js';
import { Replica } from './replication/replica.js';
import { SlotReconciler } from './replication/slot-reconciler.js';
import type { Peer, PeerClient } from './rpc/peer-client.js';

/** How long nodes are waited for that tell what they hold, where the placement hangs on it, and where somebody looks, ms. */
const REBALANCE_STATS_TIMEOUT_MS = 5000;
const STATS_TIMEOUT_MS = 1000;

export interface ClusterOptions {
  /** This node, as it tells the others. */
  member: Member;
  storage: Storage;
  objects: ObjectStore;
  coordination: CoordinationStore;
  /** Which coordination store it is, for the messages of nodes of another one. */
  coordinationLabel?: string;
  /** By which other nodes are asked how many bytes their slots have; without it, slots count by their number. */
  peers?: PeerClient;
  /** Owners of each slot, where the cluster is new. */
  owners: number;
  gracePeriodMs?: number;
  releaseDelayMs?: number;
  /** A checkpoint is written after so many commits. */
  checkpointAfter?: number;
  metrics?: ClusterMetrics;
  /** Breaks off `join`. It has no effect later. */
  signal?: AbortSignal;
  /** Is told what happens, in words for an operator. */
  onStatus?: ((text: string) => void) | undefined;
  /** Is told of what goes wrong in the background; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/** Invariant: this node answers for the slots that `replica` holds and for no others. */
export class Cluster {
  private membership!: Membership;
  private heartbeat!: Heartbeat;
  locks!: ClusterLockManager;
  private members: Member[] = [];
  private reportedSlots = '';
  private readonly urls = new Map<string, string>();
  private readonly watches: Watch[] = [];
  private readonly closing = new AbortController();
  private readonly statsCollector: StatsCollector;
  private readonly placementManager: PlacementManager;
  private readonly reconciler: SlotReconciler;
  private readonly maintenance: Maintenance;

  private constructor(
    private readonly options: ClusterOptions,
    readonly id: string,
    readonly replica: Replica,
    readonly log: CommitLog,
    readonly prefixLengths: PrefixLengths,
    /** Which restoration the log is of. */
    private readonly restored: string | undefined,
  ) {
    const {
      member,
      coordination,
      objects,
      peers,
      owners,
      gracePeriodMs,
      releaseDelayMs,
      checkpointAfter,
      onFailure,
    } = options;
    const { signal } = this.closing;
    this.statsCollector = new StatsCollector(member.id, replica, peers);
    this.placementManager = new PlacementManager({
      coordination,
      empty: emptyPlacement(prefixLengths, owners),
      bytes: async () => (await this.stats(REBALANCE_STATS_TIMEOUT_MS)).bytes,
      onChange: () => {
        this.reconciler.trigger();
        this.reportSlots();
      },
      signal,
    });
    const placement = this.placementManager;
    this.reconciler = new SlotReconciler({
      member,
      replica,
      placement,
      gracePeriodMs,
      releaseDelayMs,
      signal,
      onFailure,
    });
    this.maintenance = new Maintenance({
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
    const { storage, objects, coordination, member, metrics, signal, onFailure } = options;
    const log = new CommitLog(coordination, options.checkpointAfter);
    const known = await storage.replica();
    if (!known && !(await isEmpty(storage))) throw singleFolder(storage.dir);
    const { id, prefixLengths } = await openClusterIdentity(
      objects,
      coordination,
      log,
      options.coordinationLabel,
    );
    if (known && known.cluster !== id) throw otherFolder(storage.dir, known.cluster, id);
    await requireLogCoversStore(log, objects);
    requireFormat(member, await listMembers(coordination));
    const restoration = await readEpoch(coordination);
    const epochId = restoration?.id;
    const epoch = await epochNumber(restoration, objects);
    const replica = await Replica.open({
      ...{ storage, objects, log, cluster: id, prefixLengths, onFailure },
      ...(epochId !== undefined && { epochId }),
      ...(metrics && { metrics }),
    });
    const cluster = new Cluster(options, id, replica, log, prefixLengths, epochId);
    cluster.membership = await Membership.join(coordination, member, {
      lost: () => onFailure(new Error(`node ${member.id} was cut off from etcd; it comes back by itself`)),
      back: () => void cluster.onReconnected().catch(onFailure),
      failed: onFailure,
    });
    cluster.heartbeat = await Heartbeat.start(objects, member.id, onFailure).catch(async (error) => {
      await cluster.membership.leave();
      throw error;
    });
    try {
      // No other process has this node's id: whoever claimed by it is dead.
      await revokeLocksOf(coordination, isOwnedBy(member.id));
      const holder = ownerLabel(member);
      const shared = { coordination, log, objects, replica, prefixLengths, ...(metrics && { metrics }) };
      cluster.locks = new ClusterLockManager({ storage, ownerLabel: holder, ...shared, epoch });
      storage.enterCluster(cluster.locks, objects, onFailure);
      await replica.catchUp();
      // A node that is about to stop must not receive slots.
      signal?.throwIfAborted();
      await cluster.placementManager.updateWithSlotSizes((placement, bytes) =>
        // Whoever drains it has not said that it shall stay.
        isDraining(placement, member.id) ? placement : addNode(placement, member, bytes),
      );
      cluster.start();
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  get placement(): Placement {
    return this.placementManager.current!;
  }

  /** The nodes that run now, this one among them. */
  get nodes(): readonly Member[] {
    return this.members;
  }

  /** Since when etcd has not answered this node, ms since 1970: placement and nodes are as of then. Undefined where it does. */
  get disconnectedSince(): number | undefined {
    return this.membership.disconnectedSince;
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
    if (this.options.storage.writeError !== undefined) return false;
    return this.placement.slots.every((owners, slot) => {
      const state = owners.find(({ node }) => node === this.self)?.state;
      const isElsewhere = owners.some((owner) => owner.state !== 'initializing');
      const isNeeded = state === 'available' || (state === 'initializing' && !isElsewhere);
      return !isNeeded || this.replica.hasSlot(slot);
    });
  }

  /** Whether the tiles of a cell are here. */
  hasCell(cell: { grid: GridName; geocode: string }): boolean {
    return this.replica.hasSlot(slotOfCell(cell, this.prefixLengths));
  }

  /** How many slots this node owns, in whatever state. */
  get ownedSlotCount(): number {
    return this.placement.slots.filter((owners) => owners.some(({ node }) => node === this.self)).length;
  }

  /** Ends the claims of a node that is lost: what it was writing can be written by others at once, and by it no more. */
  async revokeLocksOf(node: string): Promise<void> {
    await revokeLocksOf(this.options.coordination, isOwnedBy(node));
  }

  /** A node gives its slots to others and gets none. Throws TW_DHT_UNKNOWN_NODE, TW_DHT_LAST_NODE. */
  async drain(node: string): Promise<void> {
    await this.placementManager.updateWithSlotSizes((placement, bytes) => drainNode(placement, node, bytes));
  }

  /** A node that drains takes slots again. Throws TW_DHT_UNKNOWN_NODE. */
  async rejoin(node: string): Promise<void> {
    await this.placementManager.updateWithSlotSizes((placement, bytes) => {
      const known = placement.nodes.find(({ id }) => id === node);
      if (!known) throw unknownNode(node);
      return addNode(placement, known, bytes);
    });
  }

  /**
   * Spreads the slots anew by the bytes that they hold; with `dryRun` it tells only what that would move. Throws
   * TW_DHT_BYTES_UNKNOWN where no node tells of some slots.
   */
  async rebalance({ dryRun = false } = {}): Promise<PlacementDiff> {
    const { bytes, unmeasured } = await this.stats(REBALANCE_STATS_TIMEOUT_MS);
    if (unmeasured > 0) throw slotSizesUnknown(unmeasured);
    let moves = diffPlacements(this.placement, rebalance(this.placement, bytes), bytes);
    if (!dryRun)
      await this.placementManager.update((placement) => {
        const after = rebalance(placement, bytes);
        moves = diffPlacements(placement, after, bytes);
        return after;
      });
    return moves;
  }

  /** What the nodes hold, and how far each has followed the log. */
  async stats(patience = STATS_TIMEOUT_MS): Promise<ClusterStats> {
    const known = this.members.length > 0;
    const members = known ? this.members : await listMembers(this.options.coordination);
    return this.statsCollector.collect(members, patience);
  }

  /** Removes what is not needed of the shared store, unless another node is at it or has been of late. */
  collectGarbage(
    options: Pick<ObjectGcContext, 'keepMs' | 'minIntervalMs'> = {},
  ): Promise<ObjectGcReport | undefined> {
    return this.maintenance.collectGarbage(options);
  }

  /** No member any more; what this node owns stays its own for the grace period. */
  async close(): Promise<void> {
    this.closing.abort();
    for (const watch of this.watches) watch.close();
    await this.reconciler.stopped();
    await this.maintenance.close();
    await this.membership.leave();
    // A store that is away keeps no node from stopping; who restores the cluster waits a while longer then.
    await this.heartbeat.close().catch(this.options.onFailure);
    await this.replica.close();
  }

  private start(): void {
    const { coordination, onFailure } = this.options;
    this.replica.start();
    this.maintenance.start();
    this.watches.push(
      watchPlacement(coordination, (stored) => this.placementManager.onStored(stored), onFailure),
      watchMembers(coordination, (change) => this.onMembersChanged(change), onFailure),
    );
  }

  /** After it was cut off from etcd. */
  private async onReconnected(): Promise<void> {
    if ((await readEpoch(this.options.coordination))?.id !== this.restored) {
      await this.membership.leave();
      throw epochChanged(this.self);
    }
    this.reconciler.trigger();
  }

  private onMembersChanged({ members }: MembersChange): void {
    const { onStatus = () => {} } = this.options;
    const left = this.members.filter(({ id }) => !members.some((member) => member.id === id));
    const came = members.filter(({ id }) => !this.members.some((member) => member.id === id));
    for (const { id, url } of left) onStatus(`node ${id} at ${url} is away`);
    for (const { id, url } of came) onStatus(`node ${id} at ${url} is here`);
    this.members = members;
    for (const { id, url } of members) this.urls.set(id, url);
    this.reconciler.onMembersChanged(members);
  }

  /** Says how many slots the node owns, where that has changed. */
  private reportSlots(): void {
    const count = (state: OwnerState) => slotsOfNode(this.placement, this.self, state).length;
    const loading = count('initializing');
    const owned = loading + count('available') + count('leaving');
    const isDrained = owned === 0 && isDraining(this.placement, this.self);
    const text = isDrained
      ? `drained: this node owns no slots, and may be stopped`
      : `this node owns ${owned} of ${SLOTS} slots${loading > 0 ? `, and loads ${loading} of them` : ''}`;
    if (text !== this.reportedSlots) this.options.onStatus?.(text);
    this.reportedSlots = text;
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
