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
export class Lease {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private renewedAt = Date.now();
  private ended = false;

  private constructor(
    private readonly store: CoordinationStore,
    readonly id: string,
    private readonly intervalMs: number,
  ) {
    // Each file that is written under a claim listens, and many are at once.
    setMaxListeners(0, this.controller.signal);
    this.schedule();
  }

  /** A new lease of `ttl` seconds. */
  static async grant(store: CoordinationStore, ttl: number, timeoutMs?: number): Promise<Lease> {
    const id = await store.grantLease(ttl, timeoutMs === undefined ? {} : { timeoutMs });
    return new Lease(store, id, (ttl * 1000) / 3);
  }

  /** Aborted when the lease is lost. */
  get lost(): AbortSignal {
    return this.controller.signal;
  }

  /** When the store has said last that it lives, ms since 1970. */
  get lastRenewedAt(): number {
    return this.renewedAt;
  }

  /** Stops renewing the lease and ends it. If the store fails to do that, the lease expires by itself. */
  async revoke(): Promise<void> {
    this.stopRenewing();
    try {
      await this.store.revokeLease(this.id, { timeoutMs: this.intervalMs });
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
    }
  }

  /** Keeps it alive no longer. */
  stopRenewing(): void {
    this.ended = true;
    clearTimeout(this.timer);
  }

  private schedule(): void {
    this.timer = setTimeout(() => void this.renew(), this.intervalMs).unref();
  }

  private async renew(): Promise<void> {
    for (let tries = 0; !this.ended; tries++) {
      try {
        if (!(await this.store.keepAlive(this.id, { timeoutMs: this.intervalMs })))
          return this.onLost(leaseGone(`lease ${this.id}`));
        this.renewedAt = Date.now();
        if (!this.ended) this.schedule();
        return;
      } catch (error) {
        if (leaseGone.is(error)) return this.onLost(error);
      }
      await backOff(tries);
    }
  }

  private onLost(reason: unknown): void {
    if (this.ended) return;
    this.stopRenewing();
    this.controller.abort(reason);
  }
}
