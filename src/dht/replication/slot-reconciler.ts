/** Brings what a node holds, and the placement, to what they should be: its own slots are loaded and let go, lost nodes replaced. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Absences } from '../membership/failure-detector.js';
import type { Member } from '../membership/membership.js';
import { isTakenOver, type Placement, slotsOfNode } from '../placement/placement.js';
import { joined, left, loaded, removed } from '../placement/placement-changes.js';
import { CHANGE_INTERVAL, type SharedPlacement } from '../placement/placement-manager.js';
import type { Replica } from './replica.js';

/** Commits wait while slots are loaded or dropped: how long, about, ms; and how many slots are so together at first and at most. */
const TURN_TIME = 300;
const FIRST_SLOTS = 128;
const MOST_SLOTS = 4096;
/** Nobody waits for slots to be dropped: how long others come first after some of them, ms. */
const DROP_PAUSE = 200;
/** How long a node is away before its slots get other owners, ms. */
const GRACE = 30_000;
/** How long an owner that has been relieved still answers, ms. */
const LINGER = 60_000;
/** Members act one after another, so that mostly one does. */
const RANK_TIME = 2000;
const POLL = 100;

export interface ReconcilerOptions {
  /** This node. */
  member: Member;
  replica: Replica;
  placement: SharedPlacement;
  grace?: number | undefined;
  linger?: number | undefined;
  signal: AbortSignal;
  /** Is told what goes wrong; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/** Invariant: this node says that a slot is loaded only after it is. */
export class Reconciler {
  private members: readonly Member[] = [];
  private readonly absences: Absences;
  /** Slots that others own, and since when, ms. */
  private readonly relieved = new Map<number, number>();
  /** Undefined where none are dropped. */
  private dropping: Pace | undefined;
  private again = false;
  private running: Promise<void> | undefined;

  constructor(private readonly options: ReconcilerOptions) {
    this.absences = new Absences(options.grace ?? GRACE, RANK_TIME);
  }

  /** Who runs now. */
  meet(members: readonly Member[]): void {
    this.members = members;
    this.look();
  }

  /** Does what is due, now and later. Nothing is before the placement is known, though a lease may be lost and won by then. */
  look(): void {
    if (!this.options.placement.current) return;
    this.again = true;
    this.running ??= this.runUntilDone().finally(() => {
      this.running = undefined;
    });
  }

  /** Resolves when nothing is done any more; after the signal. */
  async ended(): Promise<void> {
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
        onFailure(error);
        // It rejects only if the signal is aborted, and the loop checks the signal.
        await sleep(CHANGE_INTERVAL, undefined, { signal }).catch(() => undefined);
        this.again = true;
      }
    }
  }

  /** Joins again where others have given this node's slots away, because it was cut off for too long. */
  private async beThere(): Promise<void> {
    const { member, placement } = this.options;
    const isAmong = (nodes: readonly { id: string }[]) => nodes.some(({ id }) => id === this.self);
    if (isAmong(this.placement.nodes) || !isAmong(this.members)) return;
    await placement.changeByBytes((stored, bytes) =>
      isAmong(stored.nodes) ? stored : joined(stored, member, bytes),
    );
  }

  /** Loads what this node is to answer for, and says so. */
  private async loadOwn(): Promise<void> {
    const { replica, placement } = this.options;
    const isLacking = (slot: number) => !replica.holds(slot);
    const lost = slotsOfNode(this.placement, this.self, 'available').filter(isLacking);
    await this.load(lost, (some) => replica.take(some));
    for (;;) {
      const slots = slotsOfNode(this.placement, this.self, 'initializing');
      if (slots.length === 0) return;
      const isOwn = (slot: number) => this.placement.slots[slot]!.some(({ node }) => node === this.self);
      const tell = () => {
        const here = slots.filter((slot) => replica.holds(slot));
        return placement.change((stored) => loaded(stored, this.self, here));
      };
      await this.load(slots.filter(isLacking), async (some) => {
        // They may have been given to another node meanwhile.
        await replica.take(some.filter(isOwn));
        // As often as the placement may change.
        if (placement.mayChange) await tell();
      });
      await tell();
    }
  }

  /** Loads some slots after others, so many at once that commits do not wait for long. */
  private async load(slots: number[], take: (some: number[]) => Promise<void>): Promise<void> {
    const pace = new Pace();
    for (let left = slots; left.length > 0; ) {
      this.options.signal.throwIfAborted();
      left = await pace.take(left, take);
    }
  }

  /** Gives slots of nodes that are away for too long to others. Resolves to when to look again, ms. */
  private async replaceMissing(): Promise<number> {
    const rank = this.members.findIndex(({ id }) => id === this.self);
    if (rank < 0) return Infinity;
    const present = new Set(this.members.map(({ id }) => id));
    const absent = new Set(this.placement.nodes.map(({ id }) => id).filter((id) => !present.has(id)));
    this.absences.see(absent);
    let next = Infinity;
    for (const id of absent) {
      const wait = this.absences.until(id, rank);
      if (wait > 0) next = Math.min(next, wait);
      else await this.options.placement.changeByBytes((stored, bytes) => removed(stored, id, bytes));
    }
    return next;
  }

  /** Drops slots that this node no longer owns, a while after others have taken them over. Resolves to when to look again, ms. */
  private async letGo(): Promise<number> {
    const { replica, placement, linger = LINGER } = this.options;
    const ownersOf = this.placement.slots;
    const leaving = slotsOfNode(this.placement, this.self, 'leaving').filter((slot) =>
      isTakenOver(ownersOf[slot]!),
    );
    if (leaving.length > 0) await placement.change((stored) => left(stored, this.self, leaving));
    const now = performance.now();
    const { slots } = this.placement;
    const foreign = new Set(
      replica.slots.filter((slot) => !slots[slot]!.some(({ node }) => node === this.self)),
    );
    for (const slot of this.relieved.keys()) if (!foreign.has(slot)) this.relieved.delete(slot);
    for (const slot of foreign) if (!this.relieved.has(slot)) this.relieved.set(slot, now);
    const due = [...foreign].filter((slot) => this.relieved.get(slot)! + linger <= now);
    if (due.length > 0) {
      this.dropping ??= new Pace();
      const left = await this.dropping.take(due, (some) => replica.drop(some));
      if (left.length > 0) return DROP_PAUSE;
      this.dropping = undefined;
    }
    return foreign.size > due.length ? linger : Infinity;
  }
}

/** How many slots are loaded or dropped together, so that commits do not wait for long. */
class Pace {
  private size = FIRST_SLOTS;

  /** Does something with the first of some slots; resolves to the others. */
  async take(slots: number[], work: (some: number[]) => Promise<void>): Promise<number[]> {
    const some = slots.slice(0, this.size);
    const begun = performance.now();
    await work(some);
    const fitting = (some.length * TURN_TIME) / (performance.now() - begun);
    // Slots differ, and so do the times: not more than twice as many as before.
    this.size = Math.ceil(Math.min(fitting, 2 * this.size, MOST_SLOTS));
    return slots.slice(some.length);
  }
}
