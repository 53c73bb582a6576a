import { setMaxListeners } from 'node:events';
import { backOff } from '../async/index.js';
import { TilewrightError } from '../errors.js';
import { leaseGone } from './errors.js';
import type { CoordinationStore } from './kv-store.js';

/**
 * A lease that is renewed every third of its lifetime. A failed renewal is repeated at once, with back-off, until the store answers. So the
 * lease survives every outage that is shorter than two thirds of its lifetime, and one of nearly the whole lifetime if the outage
 * begins just after a renewal.
 *
 * Invariant: `lost` is aborted only if the store says that the lease does not exist. No other error means that it has ended. A holder
 * that is cut off may thus hold on for longer than the lease lasts; a commit is safe because its transaction compares the
 * claim. The local clock does not end a lease: an outage of etcd itself, however long, ends none, because a new leader
 * gives every lease its full lifetime again.
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

  /** Stops renewing the lease and ends it. If the store fails to do that, the lease expires by itself. */
  async end(): Promise<void> {
    this.stop();
    try {
      await this.store.revokeLease(this.id, { patience: this.interval });
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
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
    for (let tries = 0; !this.ended; tries++) {
      try {
        if (!(await this.store.keepAlive(this.id, { patience: this.interval })))
          return this.lose(leaseGone(`lease ${this.id}`));
        this.told = Date.now();
        if (!this.ended) this.schedule();
        return;
      } catch (error) {
        if (leaseGone.is(error)) return this.lose(error);
      }
      await backOff(tries);
    }
  }

  private lose(reason: unknown): void {
    if (this.ended) return;
    this.stop();
    this.controller.abort(reason);
  }
}
