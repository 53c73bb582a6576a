/** Reconciles a node with the placement: loads its own slots, drops foreign ones, and replaces lost nodes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FailureDetector, type Member } from './membership.js';
import { isHandoverComplete, type Placement, slotsOfNode } from './placement.js';
import { addNode, markAvailable, releaseSlots, removeNode } from './placement-changes.js';
import { MIN_UPDATE_INTERVAL_MS, type PlacementManager } from './placement-store.js';
import type { Replica } from './replica.js';

/** Target duration of one batch, after which the placement is looked at again, and its initial and maximum size in slots. */
const TARGET_BATCH_MS = 300;
const INITIAL_BATCH_SLOTS = 128;
/** Each batch has costs that do not depend on its slots: it visits the index, and reads the log since the checkpoint. */
const MIN_BATCH_SLOTS = 64;
const MAX_BATCH_SLOTS = 4096;
/** Dropping slots is not urgent: pause after a batch, so that other work can run. */
const DROP_PAUSE_MS = 200;
/** Default time that a node may be missing before its slots get other owners. */
const GRACE_PERIOD_MS = 30_000;
/** Default time that a former owner continues to answer. */
const RELEASE_DELAY_MS = 60_000;
/** Members take over one after another, so that usually only one acts. */
const RANK_DELAY_MS = 2000;
const POLL_INTERVAL_MS = 100;

interface SlotReconcilerOptions {
  /** This node. */
  member: Member;
  replica: Replica;
  placement: PlacementManager;
  gracePeriodMs?: number | undefined;
  releaseDelayMs?: number | undefined;
  signal: AbortSignal;
  /** Called with every error; failed work is retried. */
  onFailure: (error: unknown) => void;
}

/** Invariant: this node marks a slot as available only after it has loaded it. */
export class SlotReconciler {
  private members: readonly Member[] = [];
  private readonly failureDetector: FailureDetector;
  /** Loaded slots that other nodes own now, and since when, ms. */
  private readonly handedOverSince = new Map<number, number>();
  /** Undefined if no slots are being dropped. */
  private dropping: AdaptiveBatch | undefined;
  private isTriggered = false;
  private running: Promise<void> | undefined;

  constructor(private readonly options: SlotReconcilerOptions) {
    this.failureDetector = new FailureDetector(options.gracePeriodMs ?? GRACE_PERIOD_MS, RANK_DELAY_MS);
  }

  /** Sets the nodes that are running now. */
  onMembersChanged(members: readonly Member[]): void {
    this.members = members;
    this.trigger();
  }

  /** Does all due work, now and later. Does nothing before the placement is known, even if a lease is lost and regained by then. */
  trigger(): void {
    if (!this.options.placement.current) return;
    this.isTriggered = true;
    this.running ??= this.runUntilDone().finally(() => {
      this.running = undefined;
    });
  }

  /** Resolves when all work has stopped; call it after the signal has aborted. */
  async stopped(): Promise<void> {
    await this.running;
  }

  private get self(): string {
    return this.options.member.id;
  }

  private get placement(): Placement {
    return this.options.placement.current!;
  }

  private async runUntilDone(): Promise<void> {
    const { signal, onFailure } = this.options;
    while (this.isTriggered && !signal.aborted) {
      this.isTriggered = false;
      try {
        await this.rejoinIfRemoved();
        await this.loadOwnSlots();
        const dueInMs = Math.min(await this.replaceMissing(), await this.dropForeignSlots());
        if (dueInMs === Infinity || this.isTriggered) continue;
        // Waits until more work is due, or until a change triggers it earlier.
        for (let waited = 0; waited < dueInMs && !this.isTriggered; waited += POLL_INTERVAL_MS)
          await sleep(POLL_INTERVAL_MS, undefined, { signal });
        this.isTriggered = true;
      } catch (error) {
        if (signal.aborted) return;
        onFailure(error);
        // `sleep` rejects only if the signal is aborted, which the loop checks.
        await sleep(MIN_UPDATE_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
        this.isTriggered = true;
      }
    }
  }

  /** Joins again if other nodes have given the slots of this node away because it was disconnected for too long. */
  private async rejoinIfRemoved(): Promise<void> {
    const { member, placement } = this.options;
    const isAmong = (nodes: readonly { id: string }[]) => nodes.some(({ id }) => id === this.self);
    if (isAmong(this.placement.nodes) || !isAmong(this.members)) return;
    await placement.updateWithSlotSizes((stored, bytes) =>
      isAmong(stored.nodes) ? stored : addNode(stored, member, bytes),
    );
  }

  /** Loads the slots that this node should hold, and marks them as available. */
  private async loadOwnSlots(): Promise<void> {
    const { replica, placement, signal } = this.options;
    const isMissing = (slot: number) => !replica.hasSlot(slot);
    const lost = slotsOfNode(this.placement, this.self, 'available').filter(isMissing);
    await this.load(lost, (some) => replica.loadSlots(some, signal));
    for (;;) {
      const slots = slotsOfNode(this.placement, this.self, 'initializing');
      if (slots.length === 0) return;
      const isOwn = (slot: number) => this.placement.slots[slot]!.some(({ node }) => node === this.self);
      const markLoaded = () => {
        const loaded = slots.filter((slot) => replica.hasSlot(slot));
        return placement.update((stored) => markAvailable(stored, this.self, loaded));
      };
      await this.load(slots.filter(isMissing), async (some) => {
        // The placement may have assigned some of these slots to another node in the meantime.
        await replica.loadSlots(some.filter(isOwn), signal);
        // Limited by the interval between changes of the placement.
        if (placement.canUpdateNow) await markLoaded();
      });
      await markLoaded();
    }
  }

  /** Loads slots in batches, between which the placement and the other nodes are noticed. */
  private async load(slots: number[], loadBatch: (some: number[]) => Promise<void>): Promise<void> {
    const batch = new AdaptiveBatch();
    for (let remaining = slots; remaining.length > 0; ) {
      this.options.signal.throwIfAborted();
      remaining = await batch.runNext(remaining, loadBatch);
    }
  }

  /** Assigns the slots of nodes that have been missing for too long to other nodes. Resolves to the time until the next check, ms. */
  private async replaceMissing(): Promise<number> {
    const rank = this.members.findIndex(({ id }) => id === this.self);
    if (rank < 0) return Infinity;
    const present = new Set(this.members.map(({ id }) => id));
    const absent = new Set(this.placement.nodes.map(({ id }) => id).filter((id) => !present.has(id)));
    this.failureDetector.update(absent);
    let next = Infinity;
    for (const id of absent) {
      const delayMs = this.failureDetector.msUntilTakeover(id, rank);
      if (delayMs > 0) next = Math.min(next, delayMs);
      else await this.options.placement.updateWithSlotSizes((stored, bytes) => removeNode(stored, id, bytes));
    }
    return next;
  }

  /** Drops foreign slots some time after other nodes have taken them over. Resolves to the time until the next check, ms. */
  private async dropForeignSlots(): Promise<number> {
    const { replica, placement, releaseDelayMs = RELEASE_DELAY_MS } = this.options;
    const ownersOf = this.placement.slots;
    const leaving = slotsOfNode(this.placement, this.self, 'leaving').filter((slot) =>
      isHandoverComplete(ownersOf[slot]!),
    );
    if (leaving.length > 0) await placement.update((stored) => releaseSlots(stored, this.self, leaving));
    const now = performance.now();
    const { slots } = this.placement;
    const foreign = new Set(
      replica.storedSlots.filter((slot) => !slots[slot]!.some(({ node }) => node === this.self)),
    );
    for (const slot of this.handedOverSince.keys()) if (!foreign.has(slot)) this.handedOverSince.delete(slot);
    for (const slot of foreign) if (!this.handedOverSince.has(slot)) this.handedOverSince.set(slot, now);
    const due = [...foreign].filter((slot) => this.handedOverSince.get(slot)! + releaseDelayMs <= now);
    if (due.length > 0) {
      this.dropping ??= new AdaptiveBatch();
      const remaining = await this.dropping.runNext(due, (some) => replica.dropSlots(some));
      if (remaining.length > 0) return DROP_PAUSE_MS;
      this.dropping = undefined;
    }
    return foreign.size > due.length ? releaseDelayMs : Infinity;
  }
}

/** Adapts the number of slots that are loaded or dropped together to the time that they take. */
class AdaptiveBatch {
  private size = INITIAL_BATCH_SLOTS;

  /** Does `work` for the first slots; resolves to the others. */
  async runNext(slots: number[], work: (some: number[]) => Promise<void>): Promise<number[]> {
    const some = slots.slice(0, this.size);
    const startedAt = performance.now();
    await work(some);
    const fitting = (some.length * TARGET_BATCH_MS) / (performance.now() - startedAt);
    // Slots differ in size, so the batch at most doubles.
    this.size = Math.ceil(Math.max(MIN_BATCH_SLOTS, Math.min(fitting, 2 * this.size, MAX_BATCH_SLOTS)));
    return slots.slice(some.length);
  }
}
