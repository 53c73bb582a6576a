/** A node of a cluster: it joins, knows the owners and the running nodes, and changes the placement. */
import type { CoordinationStore, Watch } from '../coordination/index.js';
import type { GridName } from '../grid/index.js';
import type { ClusterMetrics } from '../metrics/index.js';
import type { ObjectStore, Storage } from '../storage/index.js';
import {
  epochChanged,
  otherFolder,
  otherFormat,
  singleFolder,
  slotSizesUnknown,
  unknownNode,
} from './errors.js';
import { Maintenance, type ObjectGcContext, type ObjectGcReport } from './garbage.js';
import { isOwnedBy, ownerLabel, revokeLocksOf } from './log/fenced-lock.js';
import { ClusterLockManager } from './log/locks.js';
import { CommitLog } from './log/log.js';
import {
  type ClusterStats,
  Heartbeat,
  listMembers,
  type Member,
  Membership,
  StatsCollector,
  watchMembers,
} from './membership.js';
import type { Peer, PeerClient } from './peers.js';
import { emptyPlacement, type OwnerState, type Placement, slotsOfNode } from './placement.js';
import { addNode, diffPlacements, drainNode, type PlacementDiff, rebalance } from './placement-changes.js';
import { PlacementManager, watchPlacement } from './placement-store.js';
import { SlotReconciler } from './reconciler.js';
import { epochNumber, openClusterIdentity, readEpoch, requireLogCoversStore } from './recovery.js';
import { Replica } from './replica.js';
import { type PrefixLengths, SLOTS, slotOfCell } from './slots.js';

/** Time limit for the statistics of the other nodes if the placement depends on them, and if they are only shown. */
const REBALANCE_STATS_TIMEOUT_MS = 5000;
const STATS_TIMEOUT_MS = 1000;

export interface ClusterOptions {
  /** This node, as the others see it. */
  member: Member;
  storage: Storage;
  objects: ObjectStore;
  coordination: CoordinationStore;
  /** A description of the coordination store, for the error messages of nodes with another one. */
  coordinationLabel?: string;
  /** Asks other nodes for the sizes of their slots. Without it, all slots count as equally large. */
  peers?: PeerClient;
  /** Owners of each slot, if the cluster is new. */
  owners: number;
  gracePeriodMs?: number;
  releaseDelayMs?: number;
  /** Number of commits between two checkpoints. */
  checkpointAfter?: number;
  metrics?: ClusterMetrics;
  /** Aborts `join`; no effect later. */
  signal?: AbortSignal;
  /** Called with status messages for an operator. */
  onStatus?: ((text: string) => void) | undefined;
  /** Called with errors of background work, all of which is retried. */
  onFailure: (error: unknown) => void;
}

/** Invariant: this node answers for exactly the slots that `replica` holds. */
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
    /** The restore that the log belongs to. */
    private readonly epochId: string | undefined,
  ) {
    const { signal } = this.closing;
    this.statsCollector = new StatsCollector(this.self, replica, options.peers);
    this.placementManager = new PlacementManager({
      coordination: options.coordination,
      empty: emptyPlacement(prefixLengths, options.owners),
      bytes: async () => (await this.stats(REBALANCE_STATS_TIMEOUT_MS)).bytes,
      onChange: () => {
        this.reconciler.trigger();
        this.reportSlots();
      },
      signal,
    });
    this.reconciler = new SlotReconciler({ ...options, replica, placement: this.placementManager, signal });
    this.maintenance = new Maintenance({
      ...options,
      self: this.self,
      cluster: id,
      log,
      prefixLengths,
      replica,
      signal,
    });
  }

  /**
   * Joins the cluster of the tile store, or creates it. Throws TW_DHT_NODE_ID_TAKEN, TW_DHT_OTHER_CLUSTER, TW_DHT_OTHER_COORDINATION,
   * TW_DHT_STORE_NOT_EMPTY, TW_DHT_OTHER_FOLDER, TW_DHT_SINGLE_FOLDER, TW_DHT_LOG_BEHIND_STORE, TW_DHT_OTHER_FORMAT, and the reason of
   * `signal`.
   */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const { storage, objects, coordination, member, signal, onFailure } = options;
    const log = new CommitLog(coordination, options.checkpointAfter);
    const known = await storage.replica();
    if (!known && !(await isEmpty(storage))) throw singleFolder(storage.dir);
    const identity = await openClusterIdentity(objects, coordination, log, options.coordinationLabel);
    const { id, prefixLengths } = identity;
    if (known && known.cluster !== id) throw otherFolder(storage.dir, known.cluster, id);
    await requireLogCoversStore(log, objects);
    requireFormat(member, await listMembers(coordination));
    const restore = await readEpoch(coordination);
    const epochId = restore?.id;
    const epoch = await epochNumber(restore, objects);
    const replica = await Replica.open({
      ...options,
      ...{ log, cluster: id, prefixLengths, epochId },
      onOutdated: () => {
        options.onStatus?.(
          'the log no longer has all commits that this node lacks; it loads its slots again',
        );
        cluster.reconciler.trigger();
      },
    });
    const cluster: Cluster = new Cluster(options, id, replica, log, prefixLengths, epochId);
    cluster.membership = await Membership.join(coordination, member, {
      lost: () => onFailure(new Error(`node ${member.id} has lost its lease in etcd; it rejoins by itself`)),
      back: () => void cluster.onReconnected().catch(onFailure),
      failed: onFailure,
    });
    cluster.heartbeat = await Heartbeat.start(objects, member.id, onFailure).catch(async (error) => {
      await cluster.membership.leave();
      throw error;
    });
    try {
      // No other process has the id of this node, so every lock with it is from a dead process.
      await revokeLocksOf(coordination, isOwnedBy(member.id));
      cluster.locks = new ClusterLockManager({
        ...options,
        log,
        replica,
        prefixLengths,
        ownerLabel: ownerLabel(member),
        epoch,
      });
      storage.enterCluster(cluster.locks, objects, onFailure);
      await replica.catchUp();
      // A node that is about to stop must not receive slots.
      signal?.throwIfAborted();
      await cluster.placementManager.updateWithSlotSizes((placement, bytes) =>
        // A draining node keeps draining until an operator lets it rejoin.
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

  /** The nodes that are running now, including this one. */
  get nodes(): readonly Member[] {
    return this.members;
  }

  /** Time of the last answer of etcd, ms since 1970, if this node has lost the connection: placement and nodes are as of then. */
  get disconnectedSince(): number | undefined {
    return this.membership.disconnectedSince;
  }

  /** The last known address of a node. A node whose lease has expired may still answer. */
  peer(id: string): Peer | undefined {
    const url = this.urls.get(id);
    return url === undefined ? undefined : { id, url };
  }

  get self(): string {
    return this.options.member.id;
  }

  /**
   * True if this node can apply commits, and has loaded its available slots and its initializing slots that no other node has (as after a
   * restore).
   */
  get isReady(): boolean {
    if (this.options.storage.catalogue.writeError !== undefined) return false;
    return this.placement.slots.every((owners, slot) => {
      const state = owners.find(({ node }) => node === this.self)?.state;
      const isElsewhere = owners.some((owner) => owner.state !== 'initializing');
      const isNeeded = state === 'available' || (state === 'initializing' && !isElsewhere);
      return !isNeeded || this.replica.hasSlot(slot);
    });
  }

  /** True if this node holds the tiles of a cell. */
  hasCell(cell: { grid: GridName; geocode: string }): boolean {
    return this.replica.hasSlot(slotOfCell(cell, this.prefixLengths));
  }

  /** The number of slots that this node owns, in any state. */
  get ownedSlotCount(): number {
    return this.placement.slots.filter((owners) => owners.some(({ node }) => node === this.self)).length;
  }

  /** Revokes the locks of a lost node, so that other nodes can write the same scenes immediately and the lost node cannot commit. */
  async revokeLocksOf(node: string): Promise<void> {
    await revokeLocksOf(this.options.coordination, isOwnedBy(node));
  }

  /** Drains a node: it hands over its slots and gets no new ones. Throws TW_DHT_UNKNOWN_NODE, TW_DHT_LAST_NODE. */
  async drain(node: string): Promise<void> {
    await this.placementManager.updateWithSlotSizes((placement, bytes) => drainNode(placement, node, bytes));
  }

  /** Lets a draining node own slots again. Throws TW_DHT_UNKNOWN_NODE. */
  async rejoin(node: string): Promise<void> {
    await this.placementManager.updateWithSlotSizes((placement, bytes) => {
      const known = placement.nodes.find(({ id }) => id === node);
      if (!known) throw unknownNode(node);
      return addNode(placement, known, bytes);
    });
  }

  /**
   * Distributes the slots by their sizes in bytes; with `dryRun` it only returns what would move. Throws TW_DHT_BYTES_UNKNOWN if no node
   * reports the size of some slots.
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

  /** Reports the sizes of all slots, and the last commit that each node has applied. */
  async stats(timeoutMs = STATS_TIMEOUT_MS): Promise<ClusterStats> {
    const known = this.members.length > 0;
    const members = known ? this.members : await listMembers(this.options.coordination);
    return this.statsCollector.collect(members, timeoutMs);
  }

  /** Removes garbage from the object store, unless another node is doing so or has done so recently. */
  collectGarbage(
    options: Pick<ObjectGcContext, 'keepMs' | 'minIntervalMs'> = {},
  ): Promise<ObjectGcReport | undefined> {
    return this.maintenance.collectGarbage(options);
  }

  /** Leaves the cluster. The node keeps its slots for the grace period. */
  async close(): Promise<void> {
    this.closing.abort();
    for (const watch of this.watches) watch.close();
    await this.reconciler.stopped();
    await this.maintenance.close();
    await this.membership.leave();
    // An unreachable store must not keep the node from stopping; a restore then waits a little longer.
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

  /** Called when the node has a new lease after it lost one. */
  private async onReconnected(): Promise<void> {
    if ((await readEpoch(this.options.coordination))?.id !== this.epochId) {
      await this.membership.leave();
      throw epochChanged(this.self);
    }
    this.reconciler.trigger();
  }

  private onMembersChanged(members: Member[]): void {
    const { onStatus = () => {} } = this.options;
    const left = this.members.filter(({ id }) => !members.some((member) => member.id === id));
    const joined = members.filter(({ id }) => !this.members.some((member) => member.id === id));
    for (const { id, url } of left) onStatus(`node ${id} at ${url} has left`);
    for (const { id, url } of joined) onStatus(`node ${id} at ${url} has joined`);
    this.members = members;
    for (const { id, url } of members) this.urls.set(id, url);
    this.reconciler.onMembersChanged(members);
  }

  /** Reports the number of slots of this node if it has changed. */
  private reportSlots(): void {
    const count = (state: OwnerState) => slotsOfNode(this.placement, this.self, state).length;
    const loading = count('initializing');
    const owned = loading + count('available') + count('leaving');
    const isDrained = owned === 0 && isDraining(this.placement, this.self);
    const text = isDrained
      ? `drained: this node owns no slots and can be stopped`
      : `this node owns ${owned} of ${SLOTS} slots${loading > 0 ? `, ${loading} of them still loading` : ''}`;
    if (text !== this.reportedSlots) this.options.onStatus?.(text);
    this.reportedSlots = text;
  }
}

/** True if a data folder contains nothing that a node would have to share. */
async function isEmpty({ catalogue: { collections, models }, index }: Storage): Promise<boolean> {
  return index.size === 0 && (await collections.isEmpty()) && (await models.isEmpty());
}

/** Throws TW_DHT_OTHER_FORMAT if another node has another document format and may misread what this node writes. */
function requireFormat({ id, format }: Member, members: Member[]): void {
  const other = members.find((member) => member.id !== id && member.format !== format);
  if (other) throw otherFormat(other.id, other.software, other.format, format);
}

const isDraining = ({ nodes }: Placement, node: string) =>
  nodes.some(({ id, draining }) => id === node && draining);
