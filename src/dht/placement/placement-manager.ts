/** The shared placement, as this node knows and changes it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CoordinationStore, compareAndSet, type StoredValue } from '../../coordination/index.js';
import type { Placement } from './placement.js';
import type { BytesBySlot } from './placement-changes.js';
import { decodePlacement, encodePlacement } from './placement-codec.js';
import { PLACEMENT_KEY, readPlacement } from './placement-store.js';

/** Minimum time between two changes by one node. */
export const MIN_UPDATE_INTERVAL_MS = 1000;

export interface PlacementManagerOptions {
  coordination: CoordinationStore;
  /** The placement of a new cluster. */
  empty: Placement;
  /** Asks the nodes for the sizes of their slots. */
  bytes: () => Promise<BytesBySlot>;
  /** Called when a later placement is known. */
  onChange: () => void;
  signal: AbortSignal;
}

/** Invariants: versions only grow; a change is computed from the stored document and replaces exactly that one. */
export class PlacementManager {
  private latest: Placement | undefined;
  private changedAt = -Infinity;
  /** The last parsed document: the same text arrives from a change and from the watch. */
  private lastParsed: { text: string; placement: Placement } | undefined;

  constructor(private readonly options: PlacementManagerOptions) {}

  /** The newest known placement; undefined until one is known. */
  get current(): Placement | undefined {
    return this.latest;
  }

  /** True if a change need not wait now. */
  get canUpdateNow(): boolean {
    return performance.now() - this.changedAt >= MIN_UPDATE_INTERVAL_MS;
  }

  /** Adopts a stored placement if it is newer. */
  onStored({ value }: StoredValue): void {
    const placement = this.parse(value);
    if (this.latest && placement.version <= this.latest.version) return;
    this.latest = placement;
    this.options.onChange();
  }

  /** Makes a change that depends on the sizes of slots; nodes are asked for them only if something changes. */
  async updateWithSlotSizes(change: (placement: Placement, bytes?: BytesBySlot) => Placement): Promise<void> {
    const stored = await readPlacement(this.options.coordination);
    const before = stored && this.parse(stored.value);
    const isSame = before !== undefined && change(before) === before;
    const bytes = isSame || !stored ? undefined : await this.options.bytes();
    await this.update((placement) => change(placement, bytes));
  }

  /** Changes the stored placement, at most once a second. */
  async update(change: (placement: Placement) => Placement): Promise<void> {
    const { coordination, empty, signal } = this.options;
    const delayMs = this.changedAt + MIN_UPDATE_INTERVAL_MS - performance.now();
    if (delayMs > 0) await sleep(delayMs, undefined, { signal });
    let stored = await readPlacement(coordination);
    for (;;) {
      const before = stored ? this.parse(stored.value) : empty;
      const after = change(before);
      if (after === before && stored) {
        this.onStored(stored);
        return;
      }
      const value = encodePlacement(after);
      const revision = stored?.modRevision ?? 0;
      const { set, current } = await compareAndSet(coordination, { key: PLACEMENT_KEY, value, revision });
      if (set) {
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
