/** The placement that all nodes share, as one of them knows it and changes it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CoordinationStore } from '../../coordination/index.js';
import type { Placement } from './placement.js';
import type { BytesBySlot } from './placement-changes.js';
import { decodePlacement, encodePlacement } from './placement-codec.js';
import { compareAndSwapPlacement, readPlacement, type StoredPlacement } from './placement-store.js';

/** Between two changes by one node, ms. */
export const MIN_UPDATE_INTERVAL_MS = 1000;

export interface PlacementManagerOptions {
  coordination: CoordinationStore;
  /** That of a new cluster. */
  empty: Placement;
  /** Asks the nodes what they hold. */
  bytes: () => Promise<BytesBySlot>;
  /** There is a later one. */
  onChange: () => void;
  signal: AbortSignal;
}

/** Invariants: versions only grow; a change is computed from the stored document and replaces exactly that one. */
export class PlacementManager {
  private latest: Placement | undefined;
  private changedAt = -Infinity;
  /** The last text that was read: the same comes from a change and from the watch. */
  private lastParsed: { text: string; placement: Placement } | undefined;

  constructor(private readonly options: PlacementManagerOptions) {}

  /** Undefined until it is first seen. */
  get current(): Placement | undefined {
    return this.latest;
  }

  /** Whether a change need not wait now. */
  get canUpdateNow(): boolean {
    return performance.now() - this.changedAt >= MIN_UPDATE_INTERVAL_MS;
  }

  /** Takes in what is stored. */
  onStored({ text }: StoredPlacement): void {
    const placement = this.parse(text);
    if (this.latest && placement.version <= this.latest.version) return;
    this.latest = placement;
    this.options.onChange();
  }

  /** A change that hangs on the bytes of slots; nodes are asked for them only where something changes. */
  async updateWithSlotSizes(to: (placement: Placement, bytes?: BytesBySlot) => Placement): Promise<void> {
    const stored = await readPlacement(this.options.coordination);
    const before = stored && this.parse(stored.text);
    const isSame = before !== undefined && to(before) === before;
    const bytes = isSame || !stored ? undefined : await this.options.bytes();
    await this.update((placement) => to(placement, bytes));
  }

  /** Changes what is stored, at most once a second. */
  async update(to: (placement: Placement) => Placement): Promise<void> {
    const { coordination, empty, signal } = this.options;
    const wait = this.changedAt + MIN_UPDATE_INTERVAL_MS - performance.now();
    if (wait > 0) await sleep(wait, undefined, { signal });
    let stored = await readPlacement(coordination);
    for (;;) {
      const before = stored ? this.parse(stored.text) : empty;
      const after = to(before);
      if (after === before && stored) {
        this.onStored(stored);
        return;
      }
      const text = encodePlacement(after);
      const { swapped, current } = await compareAndSwapPlacement(coordination, stored?.revision ?? 0, text);
      if (swapped) {
        this.changedAt = performance.now();
        this.onStored(current!);
        return;
      }
      stored = current;
    }
  }

  private parse(text: string): Placement {
    if (this.lastParsed?.text !== text) this.lastParsed = { text, placement: decodePlacement(text) };
    return this.lastParsed.placement;
  }
}
