/** Brings what a node holds, and the placement, to what they should be: its own slots are loaded and let go, lost nodes replaced. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FailureDetector } from '../membership/failure-detector.js';
import type { Member } from '../membership/membership.js';
import { isHandoverComplete, type Placement, slotsOfNode } from '../placement/placement.js';
import { addNode, markAvailable, releaseSlots, removeNode } from '../placement/placement-changes.js';
import { MIN_UPDATE_INTERVAL_MS, type PlacementManager } from '../placement/placement-manager.js';
import type { Replica } from './replica.js';

/** Commits wait while slots are loaded or dropped: how long, about, ms; and how many slots are so together at first and at most. */
const TARGET_BATCH_MS = 300;
const INITIAL_BATCH_SLOTS = 128;
const MAX_BATCH_SLOTS = 4096;
/** Nobody waits for slots to be dropped: how long others come first after some of them, ms. */
const DROP_PAUSE_MS = 200;
/** How long a node is away before its slots get other owners, ms. */
const GRACE_PERIOD_MS = 30_000;
/** How long an owner that has been relieved still answers, ms. */
const RELEASE_DELAY_MS = 60_000;
/** Members act one after another, so that mostly one does. */
const RANK_DELAY_MS = 2000;
const POLL_INTERVAL_MS = 100;

export interface SlotReconcilerOptions {
  /** This node. */
  member: Member;
  replica: Replica;
  placement: PlacementManager;
  gracePeriodMs?: number | undefined;
  releaseDelayMs?: number | undefined;
  signal: AbortSignal;
  /** Is told what goes wrong; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/** Invariant: this node says that a slot is loaded only after it is. */
export class SlotReconciler {
  private members: readonly Member[] = [];
  private readonly failureDetector: FailureDetector;
  /** Slots that others own, and since when, ms. */
  private readonly handedOverSince = new Map<number, number>();
  /** Undefined where none are dropped. */
  private dropping: AdaptiveBatch | undefined;
  private isTriggered = false;
  private running: Promise<void> | undefined;

  constructor(private readonly options: SlotReconcilerOptions) {
    this.failureDetector = new FailureDetector(options.gracePeriodMs ?? GRACE_PERIOD_MS, RANK_DELAY_MS);
  }

  /** Who runs now. */
  onMembersChanged(members: readonly Member[]): void {
    this.members = members;
    this.trigger();
  }

  /** Does what is due, now and later. Nothing is before the placement is known, though a lease may be lost and won by then. */
  trigger(): void {
    if (!this.options.placement.current) return;
    this.isTriggered = true;
    this.running ??= this.runUntilDone().finally(() => {
      this.running = undefined;
    });
  }

  /** Resolves when nothing is done any more; after the signal. */
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
        await this.loadOwn();
        const later = Math.min(await this.replaceMissing(), await this.dropForeignSlots());
        if (later === Infinity || this.isTriggered) continue;
        // Something is due then, or sooner if something changes meanwhile.
        for (let waited = 0; waited < later && !this.isTriggered; waited += POLL_INTERVAL_MS)
          await sleep(POLL_INTERVAL_MS, undefined, { signal });
        this.isTriggered = true;
      } catch (error) {
        if (signal.aborted) return;
        onFailure(error);
        // It rejects only if the signal is aborted, and the loop checks the signal.
        await sleep(MIN_UPDATE_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
        this.isTriggered = true;
      }
    }
  }

  /** Joins again where others have given this node's slots away, because it was cut off for too long. */
  private async rejoinIfRemoved(): Promise<void> {
    const { member, placement } = this.options;
    const isAmong = (nodes: readonly { id: string }[]) => nodes.some(({ id }) => id === this.self);
    if (isAmong(this.placement.nodes) || !isAmong(this.members)) return;
    await placement.updateWithSlotSizes((stored, bytes) =>
      isAmong(stored.nodes) ? stored : addNode(stored, member, bytes),
    );
  }

  /** Loads what this node is to answer for, and says so. */
  private async loadOwn(): Promise<void> {
    const { replica, placement } = this.options;
    const isLacking = (slot: number) => !replica.hasSlot(slot);
    const lost = slotsOfNode(this.placement, this.self, 'available').filter(isLacking);
    await this.load(lost, (some) => replica.loadSlots(some));
    for (;;) {
      const slots = slotsOfNode(this.placement, this.self, 'initializing');
      if (slots.length === 0) return;
      const isOwn = (slot: number) => this.placement.slots[slot]!.some(({ node }) => node === this.self);
      const tell = () => {
        const here = slots.filter((slot) => replica.hasSlot(slot));
        return placement.update((stored) => markAvailable(stored, this.self, here));
      };
      await this.load(slots.filter(isLacking), async (some) => {
        // They may have been given to another node meanwhile.
        await replica.loadSlots(some.filter(isOwn));
        // As often as the placement may change.
        if (placement.canUpdateNow) await tell();
      });
      await tell();
    }
  }

  /** Loads some slots after others, so many at once that commits do not wait for long. */
  private async load(slots: number[], take: (some: number[]) => Promise<void>): Promise<void> {
    const pace = new AdaptiveBatch();
    for (let left = slots; left.length > 0; ) {
      this.options.signal.throwIfAborted();
      left = await pace.runNext(left, take);
    }
  }

  /** Gives slots of nodes that are away for too long to others. Resolves to when to look again, ms. */
  private async replaceMissing(): Promise<number> {
    const rank = this.members.findIndex(({ id }) => id === this.self);
    if (rank < 0) return Infinity;
    const present = new Set(this.members.map(({ id }) => id));
    const absent = new Set(this.placement.nodes.map(({ id }) => id).filter((id) => !present.has(id)));
    this.failureDetector.update(absent);
    let next = Infinity;
    for (const id of absent) {
      const wait = this.failureDetector.msUntilTakeover(id, rank);
      if (wait > 0) next = Math.min(next, wait);
      else await this.options.placement.updateWithSlotSizes((stored, bytes) => removeNode(stored, id, bytes));
    }
    return next;
  }

  /** Drops slots that this node no longer owns, a while after others have taken them over. Resolves to when to look again, ms. */
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
      replica.slots.filter((slot) => !slots[slot]!.some(({ node }) => node === this.self)),
    );
    for (const slot of this.handedOverSince.keys()) if (!foreign.has(slot)) this.handedOverSince.delete(slot);
    for (const slot of foreign) if (!this.handedOverSince.has(slot)) this.handedOverSince.set(slot, now);
    const due = [...foreign].filter((slot) => this.handedOverSince.get(slot)! + releaseDelayMs <= now);
    if (due.length > 0) {
      this.dropping ??= new AdaptiveBatch();
      const left = await this.dropping.runNext(due, (some) => replica.dropSlots(some));
      if (left.length > 0) return DROP_PAUSE_MS;
      this.dropping = undefined;
    }
    return foreign.size > due.length ? releaseDelayMs : Infinity;
  }
}

/** How many slots are loaded or dropped together, so that commits do not wait for long. */
class AdaptiveBatch {
  private size = INITIAL_BATCH_SLOTS;

  /** Does something with the first of some slots; resolves to the others. */
  async runNext(slots: number[], work: (some: number[]) => Promise<void>): Promise<number[]> {
    const some = slots.slice(0, this.size);
    const begun = performance.now();
    await work(some);
    const fitting = (some.length * TARGET_BATCH_MS) / (performance.now() - begun);
    // Slots differ, and so do the times: not more than twice as many as before.
    this.size = Math.ceil(Math.min(fitting, 2 * this.size, MAX_BATCH_SLOTS));
    return slots.slice(some.length);
  }
}
