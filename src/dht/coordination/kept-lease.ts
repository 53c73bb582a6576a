import { setMaxListeners } from 'node:events';
import { coordinationUnavailable, leaseGone } from '../errors.js';
import type { CoordinationStore } from './store.js';

/**
 * A lease that is kept alive three times in its life span.
 *
 * Invariant: `lost` is aborted only after the store has said that the lease is gone. While the store is away nobody else can take
 * what the lease holds, and etcd gives every lease its whole time anew when it has a leader again.
 */
export class KeptLease {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private told = Date.now();
  private ended = false;

  private constructor(
    private readonly store: CoordinationStore,
    readonly id: string,
    private readonly interval: number,
  ) {
    // Each file that is written under a claim listens, and many are at once.
    setMaxListeners(0, this.controller.signal);
    this.schedule();
  }

  /** A new lease of `ttl` seconds. */
  static async grant(store: CoordinationStore, ttl: number, patience?: number): Promise<KeptLease> {
    const id = await store.grantLease(ttl, patience === undefined ? {} : { patience });
    return new KeptLease(store, id, (ttl * 1000) / 3);
  }

  /** Aborted when the lease is lost. */
  get lost(): AbortSignal {
    return this.controller.signal;
  }

  /** When the store has said last that it lives, ms since 1970. */
  get answered(): number {
    return this.told;
  }

  /** Keeps it alive no longer, and ends it. Where the store is away, it ends by itself. */
  async end(): Promise<void> {
    this.stop();
    try {
      await this.store.revokeLease(this.id, { patience: this.interval });
    } catch (error) {
      if (!coordinationUnavailable.is(error)) throw error;
    }
  }

  /** Keeps it alive no longer. */
  stop(): void {
    this.ended = true;
    clearTimeout(this.timer);
  }

  private schedule(): void {
    this.timer = setTimeout(() => void this.beat(), this.interval).unref();
  }

  private async beat(): Promise<void> {
    try {
      if (await this.store.keepAlive(this.id, { patience: this.interval })) this.told = Date.now();
      else this.lose(leaseGone(`lease ${this.id}`));
    } catch (error) {
      if (!coordinationUnavailable.is(error)) this.lose(error);
    }
    if (!this.ended) this.schedule();
  }

  private lose(reason: unknown): void {
    if (this.ended) return;
    this.stop();
    this.controller.abort(reason);
  }
}
