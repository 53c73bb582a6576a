/** The placement that all nodes share, as one of them knows it and changes it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CoordinationStore } from '../../coordination/index.js';
import type { Placement } from './placement.js';
import type { SlotBytes } from './placement-changes.js';
import { formatPlacement, parsePlacement } from './placement-codec.js';
import { readPlacement, type StoredPlacement, swapPlacement } from './placement-store.js';

/** Between two changes by one node, ms. */
export const CHANGE_INTERVAL = 1000;

export interface SharedPlacementOptions {
  coordination: CoordinationStore;
  /** That of a new cluster. */
  empty: Placement;
  /** Asks the nodes what they hold. */
  bytes: () => Promise<SlotBytes>;
  /** There is a later one. */
  onChange: () => void;
  signal: AbortSignal;
}

/** Invariants: versions only grow; a change is computed from the stored document and replaces exactly that one. */
export class SharedPlacement {
  private known: Placement | undefined;
  private changedAt = -Infinity;
  /** The last text that was read: the same comes from a change and from the watch. */
  private read: { text: string; placement: Placement } | undefined;

  constructor(private readonly options: SharedPlacementOptions) {}

  /** Undefined until it is first seen. */
  get current(): Placement | undefined {
    return this.known;
  }

  /** Whether a change need not wait now. */
  get mayChange(): boolean {
    return performance.now() - this.changedAt >= CHANGE_INTERVAL;
  }

  /** Takes in what is stored. */
  see({ text }: StoredPlacement): void {
    const placement = this.parse(text);
    if (this.known && placement.version <= this.known.version) return;
    this.known = placement;
    this.options.onChange();
  }

  /** A change that hangs on the bytes of slots; nodes are asked for them only where something changes. */
  async changeByBytes(to: (placement: Placement, bytes?: SlotBytes) => Placement): Promise<void> {
    const stored = await readPlacement(this.options.coordination);
    const before = stored && this.parse(stored.text);
    const isSame = before !== undefined && to(before) === before;
    const bytes = isSame || !stored ? undefined : await this.options.bytes();
    await this.change((placement) => to(placement, bytes));
  }

  /** Changes what is stored, at most once a second. */
  async change(to: (placement: Placement) => Placement): Promise<void> {
    const { coordination, empty, signal } = this.options;
    const wait = this.changedAt + CHANGE_INTERVAL - performance.now();
    if (wait > 0) await sleep(wait, undefined, { signal });
    let stored = await readPlacement(coordination);
    for (;;) {
      const before = stored ? this.parse(stored.text) : empty;
      const after = to(before);
      if (after === before && stored) {
        this.see(stored);
        return;
      }
      const text = formatPlacement(after);
      const { swapped, current } = await swapPlacement(coordination, stored?.revision ?? 0, text);
      if (swapped) {
        this.changedAt = performance.now();
        this.see(current!);
        return;
      }
      stored = current;
    }
  }

  private parse(text: string): Placement {
    if (this.read?.text !== text) this.read = { text, placement: parsePlacement(text) };
    return this.read.placement;
  }
}
