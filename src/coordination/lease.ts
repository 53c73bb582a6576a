/** Leases that are renewed as long as their holder lives. */

import { setMaxListeners } from 'node:events';
import { backOff } from '../async/index.js';
import { TilewrightError } from '../errors.js';
import { leaseGone } from './errors.js';
import type { CoordinationStore } from './store.js';

/**
 * A lease that is renewed every third of its lifetime. A failed renewal is retried immediately, with back-off, until the store answers.
 * So the lease survives every outage shorter than two thirds of its lifetime, and one of nearly the full lifetime if the outage begins
 * just after a renewal.
 *
 * Invariant: `lost` is aborted only if the store reports that the lease does not exist; no other error means that it has ended. A node
 * without a connection may thus keep its lease object for longer than the lease lasts. Commits are safe anyway, because their transaction
 * compares the lock. The local clock never ends a lease: no outage of etcd itself ends one, however long it is, because a new etcd leader
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
    // Each file that is written under a lock adds a listener, and many are written at the same time.
    setMaxListeners(0, this.controller.signal);
    this.schedule();
  }

  /** Grants a new lease of `ttl` seconds. */
  static async grant(store: CoordinationStore, ttl: number): Promise<Lease> {
    const id = await store.grantLease(ttl);
    return new Lease(store, id, (ttl * 1000) / 3);
  }

  /** Aborted when the lease is lost. */
  get lost(): AbortSignal {
    return this.controller.signal;
  }

  /** Time of the last confirmed renewal, ms since 1970. */
  get lastRenewedAt(): number {
    return this.renewedAt;
  }

  /** Stops renewing the lease and revokes it. If the store cannot revoke it, the lease expires by itself. */
  async revoke(): Promise<void> {
    this.stopRenewing();
    try {
      await this.store.revokeLease(this.id, { timeoutMs: this.intervalMs });
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
    }
  }

  /** Stops the renewals, so that the lease expires. */
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
